"""What was said and found, as far as a model is shown it: it grows, is trimmed, and summed up."""
