"""What outlives the process: events and sessions in one SQLite file."""
