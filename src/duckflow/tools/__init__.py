"""Tools for models: one file a family, arguments as models, results as values. No tool writes state."""
