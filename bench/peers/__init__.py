"""Duckflow beside other agents, each asked to do the same by a model that answers at once."""
