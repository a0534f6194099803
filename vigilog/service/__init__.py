"""The monitoring service: a database for many clients, each of which holds its own copies of views."""
