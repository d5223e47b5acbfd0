"""Another graph: a model trained on one graph meets another one, with few labels or none."""
