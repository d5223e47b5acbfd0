"""Methods that train: a model of their own, or a changed copy of the one they are given."""
