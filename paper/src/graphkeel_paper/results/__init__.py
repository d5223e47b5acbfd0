"""Finished tables as files: every run of a table, read again, and what a grid will cost."""
