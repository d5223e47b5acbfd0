"""Branch and bound over boxes: one question, one relaxation, one search for loops and networks."""
