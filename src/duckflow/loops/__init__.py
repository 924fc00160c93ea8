"""The engine: a session that owns the state, and the loops that change it. Read `turn.py` first."""
