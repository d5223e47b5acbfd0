"""Properties of ReLU networks on boxes."""
