"""Maintaining views: what a transaction costs, beside recomputing and comparing, and beside programs written by hand."""

from __future__ import annotations

from bench.options import Options


def main(options: Options) -> int:
    from bench.watch.command import run  # here, so that a process that measures has only its own contender in memory

    return run(options)
