"""Maintenance: what a change of base relations does to views, as rules."""
