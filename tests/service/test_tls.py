"""TLS, from the server's certificate to clients that know it, and clients that do not."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.conftest import Serve
from tests.service.serving import Served
from vigilog.client import aconnect, connect
from vigilog.core.errors import ConnectionLost

pytestmark = pytest.mark.apart

TOOL = [sys.executable, "-m", "vigilog.cli.main"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of this machine's own, and its key."""
    openssl, folder = shutil.which("openssl"), tmp_path_factory.mktemp("tls")
    assert openssl, "there is no openssl here (Debian, Ubuntu: apt-get install openssl)"
    found = folder / "host.pem", folder / "host.key"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    keys = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subprocess.run(
        [openssl, "req", "-x509", *keys, *names, "-out", str(found[0]), "-keyout", str(found[1])], check=True, capture_output=True
    )
    return found


@pytest.fixture
def secure(serve: Serve, certificate: tuple[Path, Path]) -> Served:
    return serve("--certificate", str(certificate[0]), "--key", str(certificate[1]))


def test_clients_that_know_the_certificate(secure: Served, certificate: tuple[Path, Path]) -> None:
    url = f"https://127.0.0.1:{secure.port}"
    known = ssl.create_default_context(cafile=str(certificate[0]))
    with connect(url, tls=known) as client:
        closure = client.enroll("closure")
        assert closure.wait_for(client.tell(insert={"edge": [("a", "b"), ("b", "c")]}).tx, 60)
        assert set(closure) == {("a", "b"), ("b", "c"), ("a", "c")} == set(client.view("closure"))
        environment = os.environ | {"SSL_CERT_FILE": str(certificate[0])}
        following = subprocess.Popen([*TOOL, "subscribe", url, "closure"], stdout=subprocess.PIPE, text=True, env=environment)
        assert following.stdout is not None
        with following.stdout as lines:
            assert '"tx": 1' in lines.readline()
            told = subprocess.run(
                [*TOOL, "tell", url, '{"insert": {"edge": [["c", "d"]]}}'], env=environment, capture_output=True, text=True
            )
            assert told.returncode == 0 and '"tx": 2' in told.stdout, told.stderr
            assert '["a", "d"]' in lines.readline()
            following.terminate()
            following.wait(60)


def test_an_asynchronous_client(secure: Served, certificate: tuple[Path, Path]) -> None:
    known = ssl.create_default_context(cafile=str(certificate[0]))

    async def work() -> None:
        async with aconnect(f"https://localhost:{secure.port}", tls=known) as client, client.subscribe("closure") as changes:
            assert (await anext(changes)).tx == 0
            await client.tell(insert={"edge": [("a", "b")]})
            assert (await anext(changes)).tx == 1

    asyncio.run(asyncio.wait_for(work(), 60))


def test_who_does_not_know_it_stays_away(secure: Served) -> None:
    with connect(f"https://127.0.0.1:{secure.port}") as stranger:
        with pytest.raises(ConnectionLost, match=r"certificate verify failed|CERTIFICATE_VERIFY_FAILED"):
            stranger.views()
        with pytest.raises(ConnectionLost, match=r"certificate verify failed|CERTIFICATE_VERIFY_FAILED"):
            stranger.subscribe("closure")
    with connect(f"http://127.0.0.1:{secure.port}") as plain, pytest.raises(ConnectionLost):
        plain.views()
    assert secure.mistakes() == []
