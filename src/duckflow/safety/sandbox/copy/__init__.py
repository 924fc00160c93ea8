"""The copy a command works on, what it did there, and how that becomes real."""
