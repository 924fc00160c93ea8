"""Redaction: replace secrets by markers before a model, a screen, a log or the database gets them."""
