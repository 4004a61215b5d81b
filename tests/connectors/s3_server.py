"""A server of S3 for tests, from the package moto."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

import pytest

from tests.connectors.ports import free_port


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """The address of a server that has the bucket ``lake``."""
    pytest.importorskip("moto", reason="needs the package moto")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(300):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(urllib.request.Request(f"{address}/lake", method="PUT")).close()
                    break
                time.sleep(0.1)
            yield address
        finally:
            server.kill()


def options_of(address: str) -> dict[str, str]:
    """The options for deltalake."""
    return {
        "aws_endpoint_url": address,
        "aws_access_key_id": "somebody",
        "aws_secret_access_key": "hush",
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
    }
