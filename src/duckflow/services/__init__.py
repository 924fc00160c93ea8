"""Side questions to a model: prompt in, typed answer out."""
