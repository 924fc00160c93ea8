"""Agents: processes of Duckflow that work on copies of the folder, and the joining of their work."""
