"""Files as events describe them: changes, effects of commands, programs that Duckflow starts."""
