"""Side questions to a model: each defines a prompt and a typed answer."""
