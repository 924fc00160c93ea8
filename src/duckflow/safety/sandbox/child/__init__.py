"""What runs in the processes around a command. Standard library only: it must start fast and hold little."""
