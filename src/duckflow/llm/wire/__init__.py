"""Communication with model servers over HTTP: wire formats, endpoints, errors, fallbacks."""
