"""The embedded executor: SQLite, in this process."""
