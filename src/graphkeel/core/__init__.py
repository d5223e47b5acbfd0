"""What every package may use: errors, optional packages, files written whole, limits of memory."""
