"""Clients of the monitoring service."""
