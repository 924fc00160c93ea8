"""The Duck Pacemaker: decides how long to work and when to ask. Pure functions of observations."""
