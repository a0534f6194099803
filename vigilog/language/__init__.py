"""The language: text to a checked program."""
