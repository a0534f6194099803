"""How much memory there is."""

from __future__ import annotations

import os
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def machine_memory() -> int:
    """The bytes of memory that this process may have: the machine's, or its container's."""
    bounds = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in map(Path, _LIMITS):
        text = path.read_text().strip() if path.is_file() else ""
        bounds += [int(text)] if text.isdecimal() else []
    return min(bounds)
