"""Code intelligence from the user's language servers: definitions, references, renames, diagnostics (O5)."""
