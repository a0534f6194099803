"""Passes: each takes a program and gives a program that means the same, prints, and parses again."""
