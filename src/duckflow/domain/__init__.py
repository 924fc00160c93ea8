"""Domain model: plain frozen data and the reducer that changes state. Imports no other package of ours."""
