"""What stands between a model's wish and the machine: paths, protected names, policy."""
