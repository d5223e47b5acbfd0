"""Verification problems in the formats of other tools."""
