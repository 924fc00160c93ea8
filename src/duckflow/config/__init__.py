"""Settings: their models, their sources, and the folders on the user's machine."""
