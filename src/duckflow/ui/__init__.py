"""User interfaces: terminal, headless output and web page. They know events, state and catalogues only."""
