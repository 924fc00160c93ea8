"""Decision whether an action may run: risk, protected names, and the likely effects of a command line."""
