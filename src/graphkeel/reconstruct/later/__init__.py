"""After the fit: the graph changes, labels are wanted, and somebody asks what happened."""
