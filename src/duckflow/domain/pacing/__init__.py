"""The duck's condition as data: vitals, loop limits and their reasons."""
