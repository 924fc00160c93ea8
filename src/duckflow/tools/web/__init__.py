"""Web pages as text, fetched after the user was asked."""
