"""How much of the machine bulk evaluation may take."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from vigilog.core.memory import machine_memory

SHARE = 0.5  # of the machine's memory, unless said otherwise
MEMORY, SPILL = "VIGILOG_BULK_MEMORY", "VIGILOG_BULK_SPILL"


@dataclass(frozen=True)
class Settings:
    """The memory limit in bytes, and the folder for what does not fit.

    >>> Settings(2**30, "/tmp/spilled").told
    '1,024 MiB'
    """

    memory: int
    spill: str

    @classmethod
    def from_environment(cls) -> Settings:
        given = os.environ.get(MEMORY, "")
        memory = int(float(given) * 2**20) if given else int(SHARE * machine_memory())
        return cls(memory, os.environ.get(SPILL) or str(Path(tempfile.gettempdir()) / f"vigilog-bulk-{os.getpid()}"))

    @property
    def config(self) -> dict[str, str | bool | int | float | list[str]]:
        """As DuckDB takes it. It loads nothing by itself, and keeps no order that nobody asked for."""
        return {
            "memory_limit": f"{self.memory // 1024}KiB",
            "temp_directory": self.spill,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }

    @property
    def told(self) -> str:
        return f"{self.memory / 2**20:,.0f} MiB"


def state(memory: int | None, spill: Path | None) -> None:
    """From now on this process, and those that it starts, take no more memory, in MiB, and put what does not fit into a folder."""
    if memory is not None:
        os.environ[MEMORY] = str(memory)
    if spill is not None:
        os.environ[SPILL] = str(spill.absolute())
