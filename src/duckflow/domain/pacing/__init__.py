"""How the duck is doing, as data: vitals, loop limits with their reasons, the health check-up."""
