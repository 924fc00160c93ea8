"""What is drawn around the prompt, and drawn again as it changes: activity above it, the status bar below."""
