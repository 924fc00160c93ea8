"""Models that need no server: embedded, scripted, relay."""
