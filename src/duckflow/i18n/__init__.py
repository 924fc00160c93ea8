"""What the user reads, in Japanese and English. The texts are in en.toml and ja.toml."""
