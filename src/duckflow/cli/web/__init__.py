"""The web view wired up: sessions that are read along, sessions this process works on, the launch."""
