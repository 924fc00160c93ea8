"""Reading of data from models and users: repairs its shape and describes its faults."""
