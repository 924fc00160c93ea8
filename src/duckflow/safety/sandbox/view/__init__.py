"""Part of the machine that a command sees: an allow-list, with empty files in place of secrets."""
