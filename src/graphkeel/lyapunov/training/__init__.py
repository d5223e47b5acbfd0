"""Algorithm 1: states, loss, all classes as one batch, and the loop of training and asking."""
