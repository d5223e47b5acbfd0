"""The parts of the certificate: exact arithmetic, bounds, the builder and the independent checker."""
