"""A real PostgreSQL for a test run: its own folder, a free port of this machine, a password."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USER, PASSWORD = "gardener", "tulip-4711"


def binaries() -> Path | None:
    """Where PostgreSQL's programs are; Debian does not put them on the PATH."""
    on_path = shutil.which("initdb")
    places = [Path(on_path).resolve().parent] if on_path else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "pg_ctl").exists()), None)


@dataclass(frozen=True)
class Postgres:
    programs: Path
    port: int

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    @property
    def login(self) -> dict[str, Any]:
        return {"user": USER, "password": PASSWORD}

    def run(self, sql: str) -> list[str]:
        """The lines that some statements answer."""
        command = [str(self.programs / "psql"), "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port)]
        done = subprocess.run(
            [*command, "-U", USER, "-d", "postgres", "-c", sql],
            env={**os.environ, "PGPASSWORD": PASSWORD},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()


@contextmanager
def postgres(programs: Path) -> Iterator[Postgres]:
    """Starts a server, and stops it at the end. It does not run as root, so root starts it as the user that the package made."""
    folder = Path(tempfile.mkdtemp(prefix="vigilog-postgres-"))
    user = "postgres" if os.getuid() == 0 else None
    if user:
        shutil.chown(folder, user)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def call(program: str, *arguments: str) -> None:
        subprocess.run([str(programs / program), *arguments], user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL)

    data = str(folder / "data")
    try:
        call("initdb", "-D", data, "-U", USER, "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync", "-E", "UTF8", "--locale=C")
        settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        call("pg_ctl", "-D", data, "-l", str(folder / "log"), "-o", settings, "-w", "start")
        try:
            yield Postgres(programs, port)
        finally:
            call("pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
