"""Experiments: many seeds of one method, stored row by row, compared with the paper."""
