"""Spark: its session, and reading and writing through it. `pyspark` is imported here and in `executors/spark` only."""
