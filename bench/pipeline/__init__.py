"""A data pipeline on Spark: five views over real tables, beside plain Spark that computes them anew and compares."""

from __future__ import annotations

from bench.options import Options


def main(options: Options) -> int:
    from bench.pipeline.command import run  # here, so that a process that measures has only its own contender in memory

    return run(options)
