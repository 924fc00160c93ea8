"""The engine: a session that owns the state, and the loops that move it on. Read `turn.py` first."""
