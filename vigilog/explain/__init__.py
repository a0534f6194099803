"""Shows what becomes of a program."""
