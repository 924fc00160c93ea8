"""The Duck Pacemaker: how long to work, how it goes, and when to ask. Pure functions of what was observed."""
