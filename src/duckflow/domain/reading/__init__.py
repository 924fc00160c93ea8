"""Reads data from models and users: repairs its form and describes its faults."""
