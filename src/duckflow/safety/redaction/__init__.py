"""Secrets are replaced by markers before model, screen, log and database see them."""
