"""What the commands share: options, output, the width of the terminal."""
