"""The web page, its data, and access control of its server."""
