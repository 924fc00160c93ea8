"""The SQLite file: opened privately, migrated, and recovered if damaged."""
