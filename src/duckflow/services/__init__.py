"""What a model is asked for: prompt in, typed answer out."""
