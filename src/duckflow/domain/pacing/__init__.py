"""How the duck is doing, as data: vitals, loop limits and their reasons."""
