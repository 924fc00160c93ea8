"""Actions: the dispatcher, the gate, the runner and the log of actions."""
