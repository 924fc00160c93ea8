"""Policy: whether an action may run, by its risk, protected names and the likely effects of a command."""
