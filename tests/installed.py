"""Installations that have less than this one: folders with links to some of its packages, and Python processes that see nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BASE: list[str] = PROJECT["dependencies"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


class Installation:
    """Vigilog with some packages, and those that they need."""

    def __init__(self, folder: Path, requirements: Iterable[str]) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "vigilog").symlink_to(ROOT / "vigilog")
        for found in needed(requirements):
            for file in found.files or ():
                top = file.parts[0]
                if top != ".." and not (folder / top).exists():
                    (folder / top).symlink_to(Path(str(found.locate_file(top))))

    command = (sys.executable, "-S")

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.folder)}

    def python(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [*self.command, *arguments]
        return subprocess.run(command, cwd=cwd, env=self.environment, capture_output=True, text=True, check=False, timeout=120)

    def vigilog(self, *arguments: str, cwd: Path | None = None) -> tuple[int, str, str]:
        """The status of a command, and what it says."""
        done = self.python("-m", "vigilog.cli.main", *arguments, cwd=cwd)
        return done.returncode, done.stdout, done.stderr


def needed(requirements: Iterable[str]) -> list[Distribution]:
    """The distributions that are required, and those that they require."""
    found: dict[str, Distribution] = {}
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        extras = ["", *wanted.extras]
        if wanted.marker is not None and not any(wanted.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        if wanted.name not in found:
            found[wanted.name] = distribution(wanted.name)
            own = [Requirement(text) for text in found[wanted.name].requires or ()]
            waiting += [one for one in own if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras)]
    return list(found.values())
