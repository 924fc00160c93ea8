"""What a model can do: one file a family, arguments as models, results as values. Tools never touch state."""
