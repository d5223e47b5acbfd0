"""A method on a graph, seed by seed, and what is kept of it: the work behind `keel run`, `demo`,
`adapt` and `feedback`."""
