"""The work and the output of commands, imported only when they run."""
