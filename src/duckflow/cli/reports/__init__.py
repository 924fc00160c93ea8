"""What the commands print or do, imported only when they run."""
