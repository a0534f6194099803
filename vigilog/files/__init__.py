"""Rows in text files, read and written without Spark: small ones."""
