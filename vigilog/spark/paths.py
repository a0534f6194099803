"""Local paths as Spark takes them."""

from __future__ import annotations

from pathlib import Path


def escaped(path: Path) -> str:
    """A path, absolute, with the characters escaped that Spark would expand."""
    return "file://" + "".join(f"\\{character}" if character in "[]{}*?\\" else character for character in str(path.absolute()))
