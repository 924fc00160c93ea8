"""Output to the terminal: widths, colours, Markdown, escaping, scrollback."""
