"""Methods that leave the model's weights as they are."""
