"""A server of Spark Connect on this machine, in a process of its own, for as long as a block runs."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from penstock.error import refusal

_PORT = "penstock: the server listens at port "


@contextmanager
def server_at(remote: str) -> Iterator[str]:
    """The address of a server within the block.

    Args:
        remote: An address, which is returned; or a local master, for which a new server starts, with a free port and a
            token that only this process knows.

    Raises:
        ValueError: if `remote` is neither.
        RuntimeError: if the new server ends at once.
    """
    if remote.startswith("sc://"):
        yield remote
        return
    if not re.fullmatch(r"local(\[(\d+|\*)\])?", remote):
        what = f"{remote!r} is neither the address of a Spark Connect server nor a local master"
        raise refusal(
            ValueError, what, where="", hint="write it as in sc://host:15002, or write local or local[4]"
        )
    with started_server("local[2]" if remote == "local" else remote) as (_, address):
        yield address


@contextmanager
def started_server(master: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process of a new server within the block, in a process group of its own, and its address.

    Raises:
        RuntimeError: if the server ends at once.
    """
    token = secrets.token_hex(16)
    # Neither the server's own Spark nor its Python may look for another server.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    with subprocess.Popen(
        [sys.executable, "-m", __name__, master],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        try:
            process.stdin.write(f"{token}\n")
            process.stdin.flush()
            yield process, f"sc://localhost:{_port_of(process)}/;token={token}"
        finally:
            # The process ends with its input, and takes its Java along.
            process.stdin.close()


def _port_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(_PORT):
            return int(line.removeprefix(_PORT))
    raise RuntimeError(f"the server of Spark Connect has ended with the status {process.wait()}")


def main(master: str) -> None:
    """Runs a server until the standard input ends; the first line of the input is the token."""
    from penstock_spark.session.session import SessionOptions, session_for

    conf = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.authenticate.token": sys.stdin.readline().strip(),
    }
    spark = session_for(SessionOptions(master=master, app_name="penstock conformance", conf=conf))
    service = getattr(spark._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")  # type: ignore[union-attr]
    print(f"{_PORT}{getattr(service, 'MODULE$').localPort()}", flush=True)
    sys.stdin.read()
    # Its Java may have died, which its clients have noticed.
    with suppress(Exception):
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
