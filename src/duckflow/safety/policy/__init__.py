"""May it run? Risk, protected names, and what a command line seems to do."""
