"""Lines around the prompt, redrawn when they change: activity above it, the status bar below it."""
