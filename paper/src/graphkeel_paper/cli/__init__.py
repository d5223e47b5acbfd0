"""The commands of `keel-paper`."""
