"""Comparison of Duckflow with other agents on the same task, with a model that answers at once."""
