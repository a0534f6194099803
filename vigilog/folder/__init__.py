"""The durable database: a program with its data in a folder."""
