"""Demand: derive only what is asked for."""
