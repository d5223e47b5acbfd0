"""The candidates: every way of rewriting the features that the guard may choose from."""
