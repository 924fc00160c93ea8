"""Plans and task lists as operations."""
