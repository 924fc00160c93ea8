"""Taking changes back, and what a crash left behind."""
