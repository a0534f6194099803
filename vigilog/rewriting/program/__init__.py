"""Passes: true functions from programs to programs."""
