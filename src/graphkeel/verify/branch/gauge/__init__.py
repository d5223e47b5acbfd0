"""What is special to a gauge V, convex and of one hidden layer: linear programs and levels of V."""
