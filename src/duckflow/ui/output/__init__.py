"""How text reaches the terminal: widths, colours, Markdown, escaping, scrollback."""
