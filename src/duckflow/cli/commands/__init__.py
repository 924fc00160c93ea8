"""All commands other than the conversation. Slow modules are imported when a command runs."""
