"""The parts of a session, wired together by `App`."""
