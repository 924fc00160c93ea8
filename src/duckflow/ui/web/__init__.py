"""The web page, the data it shows, and the guard of its server."""
