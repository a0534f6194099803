"""The engine: puts programs, data and executors together."""
