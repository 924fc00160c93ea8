"""Data about files: changes, effects of commands, and programs that Duckflow starts."""
