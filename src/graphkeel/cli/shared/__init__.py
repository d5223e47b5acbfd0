"""Shared by the commands: options, output, the width of the terminal."""
