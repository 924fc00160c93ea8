"""The web view: what a browser is sent, the server that sends it, and the page."""
