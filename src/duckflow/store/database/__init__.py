"""The SQLite file: opened privately, migrated, recovered if damaged."""
