"""All commands other than the conversation. Light: what is slow is imported when a command runs."""
