"""Pictures of cameras: grey images as text (PGM), in which a face is a patch that is not black. Two faces are the same if their greys are near."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

THRESHOLD = 3


@dataclass(frozen=True)
class Face:
    face: int  # the mean grey of its patch
    origin: str  # the picture


def read(path: Path) -> list[list[int]]:
    """The greys of a picture, line by line."""
    words = path.read_text().split()
    width, height = int(words[1]), int(words[2])
    greys = list(map(int, words[4:]))
    return [greys[row * width : (row + 1) * width] for row in range(height)]


def patches(picture: list[list[int]]) -> list[int]:
    """The mean grey of each patch."""
    left = {(y, x) for y, line in enumerate(picture) for x, grey in enumerate(line) if grey}
    found = []
    while left:
        todo, patch = [left.pop()], []
        while todo:
            y, x = todo.pop()
            patch.append(picture[y][x])
            near = {(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)} & left
            left -= near
            todo += near
        found.append(round(sum(patch) / len(patch)))
    return found


def segmentface(data: str) -> list[Face]:
    """All faces in the pictures of a folder."""
    pictures = sorted((Path(__file__).parent / data).glob("*.pgm"))
    return [Face(grey, path.stem) for path in pictures for grey in patches(read(path))]


def matchface(one: int, other: int) -> bool:
    return abs(one - other) <= THRESHOLD
