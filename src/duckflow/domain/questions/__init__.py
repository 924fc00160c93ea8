"""Questions to the user, and the user's answers."""
