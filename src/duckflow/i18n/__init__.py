"""Texts for the user, in Japanese and English. They are in en.toml and ja.toml."""
