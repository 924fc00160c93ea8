"""Views around the prompt, redrawn as they change: activity above it, the status bar below."""
