"""Language models: a client for each way to reach one, and the parsing of their answers."""
