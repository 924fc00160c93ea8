"""`python -m duckflow`."""

from duckflow.cli import main

main()
