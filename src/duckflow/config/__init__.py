"""Settings: their data models, their sources, and the folders for Duckflow's own files."""
