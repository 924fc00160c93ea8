"""Models without a server of their own: embedded, scripted, relay."""
