"""The Duck Pacemaker: decides how long to work and when to ask the user. Only pure functions."""
