"""The web view: sessions of this machine, runs of the fleet, the server, and its start."""
