"""Copies of a data folder: made while transactions go on, and made into a data folder again."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from vigilog.core.errors import DataError
from vigilog.executors.watch import Report, Watch
from vigilog.files.place import is_uri
from vigilog.store.file import FORMAT, NAME, SUM, check_seal, copy_file, damage, seal

SEGMENTS, WAREHOUSE = "segments", "warehouse"
TRIES = 3  # so often a copy is begun anew because a snapshot was replaced meanwhile


def backup(folder: str | Path, target: str | Path, report: Report | None = None) -> int:
    """Copies a data folder, as it is now, into a new one, while this process or another goes on with it; gives the number of its last transaction.

    A warehouse that is not on this machine is not copied; the copy names it.
    """
    folder, target = Path(folder), Path(target)
    if not (folder / NAME).is_file():
        raise DataError(f"{folder} is not a data folder: it has no {NAME}", "no-data")
    _fresh(target, "a backup goes into a new folder")
    for last in range(1, TRIES + 1):
        try:
            return _copied(folder, target, report)
        except FileNotFoundError:  # a snapshot that has just been replaced
            _emptied(target)
            if last == TRIES:
                raise DataError(f"{folder} changes while it is copied; try again", "folder") from None
        except OSError as reason:
            _emptied(target)
            raise DataError(f"{target} cannot be written ({reason.strerror or reason})", "folder") from None
        except BaseException:
            _emptied(target)
            raise
    raise AssertionError("it ends above")


def _copied(folder: Path, target: Path, report: Report | None) -> int:
    copy = target / f"{NAME}.part"
    watch = Watch(report=report)
    watch.begin("copying the file")
    copy_file(folder / NAME, copy, lambda done, total: watch.part(done, total, "byte"))
    with damage(copy), closing(sqlite3.connect(copy)) as connection:
        (last,) = connection.execute("SELECT coalesce(max(tx), 0) FROM vigilog_log").fetchone()
        settings = dict(connection.execute("SELECT name, value FROM vigilog_about").fetchall())
        snapshots = [location for (location,) in connection.execute("SELECT location FROM vigilog_snapshots")]
    folders = {folder / SEGMENTS: target / SEGMENTS} if (folder / SEGMENTS).is_dir() else {}
    warehouse = settings.get("warehouse", str(folder / WAREHOUSE))
    if not is_uri(warehouse):
        folders |= {Path(warehouse) / location: target / WAREHOUSE / location for location in snapshots}
        changes = [*Path(warehouse).glob("*/plus-*"), *Path(warehouse).glob("*/minus-*")]
        folders |= {change: target / WAREHOUSE / change.relative_to(warehouse) for change in changes}
    _copy_folders(folders, watch)
    copy.rename(target / NAME)  # last, so that what has it is whole
    return int(last)


def _copy_folders(folders: Mapping[Path, Path], watch: Watch) -> None:
    """Copies segments and snapshots, which never change."""
    watch.begin("copying segments and snapshots")
    total, done = sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file()), 0

    def copied(source: str, target: str) -> None:
        nonlocal done
        shutil.copy2(source, target)
        done += Path(target).stat().st_size
        watch.part(done, total, "byte")

    for source, target in folders.items():
        shutil.copytree(source, target, copy_function=copied)


def restore(backup: str | Path, folder: str | Path, report: Report | None = None) -> str:
    """Makes a data folder from a backup. It begins a new history, which is given, so that no client takes it for the one it knew."""
    backup, folder = Path(backup), Path(folder)
    if not (backup / NAME).is_file():
        raise DataError(f"{backup} is not a backup: it has no {NAME}", "no-data")
    _fresh(folder, "a backup is restored into a new folder")
    history = secrets.token_hex(8)
    try:
        copy = folder / f"{NAME}.part"
        watch = Watch(report=report)
        watch.begin("copying the file")
        copy_file(backup / NAME, copy, lambda done, total: watch.part(done, total, "byte"))
        with damage(copy), closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            settings = dict(connection.execute("SELECT name, value FROM vigilog_about").fetchall())
            if int(settings.get("format", 0)) > FORMAT:
                raise DataError(f"{backup} has format {settings['format']}, made by a later Vigilog", "format")
            if SUM in settings:
                check_seal(connection, backup / NAME)
            connection.execute("UPDATE vigilog_about SET value = ? WHERE name = 'history'", (history,))
            if not is_uri(settings.get("warehouse", "")):
                connection.execute("DELETE FROM vigilog_about WHERE name = 'warehouse'")
            if SUM in settings:
                seal(connection)
        _copy_folders({backup / part: folder / part for part in (SEGMENTS, WAREHOUSE) if (backup / part).is_dir()}, watch)
        copy.rename(folder / NAME)
    except OSError as reason:
        _emptied(folder)
        raise DataError(f"{folder} cannot be written ({reason.strerror or reason})", "folder") from None
    except BaseException:
        _emptied(folder)
        raise
    return history


def _fresh(folder: Path, rule: str) -> None:
    try:
        if folder.exists() and any(folder.iterdir()):
            raise DataError(f"{folder} is not empty; {rule}", "folder")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise DataError(f"{folder}: {reason.strerror}", "folder") from None


def _emptied(folder: Path) -> None:
    """Takes back what was begun."""
    shutil.rmtree(folder, ignore_errors=True)
