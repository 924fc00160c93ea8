"""The commands beside the conversation. Light: what is slow is imported when a command runs."""
