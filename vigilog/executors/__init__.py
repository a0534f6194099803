"""Two ways to run the same rules: embedded (SQLite) and Spark."""
