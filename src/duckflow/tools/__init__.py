"""Tools for models: a file for each family, arguments as models, results as values. No tool writes state."""
