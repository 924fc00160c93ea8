"""User interfaces: terminal, plain output, web page. They import only events, state and catalogues."""
