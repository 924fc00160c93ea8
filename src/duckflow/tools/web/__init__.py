"""Looking outside: pages of the web, asked about, as text."""
