"""A program with PySpark's client alone: what it can import, and what it is told without a server."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.client_only import PRELUDE

_IMPORTS = """
import importlib, pkgutil
left_out = ("penstock_spark.session.classic.", "penstock_spark.beam")
for package in ("penstock_spark", "penstock_connectors", "penstock_conformance"):
    folders = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(folders, f"{package}.", onerror=lambda name: None):
        if not module.name.startswith(left_out) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print([name for name in sys.modules if name.startswith(("py4j", "pyspark.core"))])
"""

_PIPELINE = """
import penstock as beam
try:
    (beam.Pipeline(argv=sys.argv[1:]) | beam.Create([1])).pipeline.run()
except Exception as error:
    print(type(error).__name__)
    print(error)
"""


def run(program: str, *arguments: str, **variables: str) -> str:
    """What a program prints in a Python that has only the client."""
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"} | variables
    command = [sys.executable, "-c", PRELUDE + program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_the_classic_backend_imports_what_the_client_leaves_out() -> None:
    assert run(_IMPORTS) == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "has no server to talk to"),
        (["--master=local[2]"], "runs no Spark of its own for master='local[2]'"),
    ],
    ids=["no master", "local"],
)
def test_without_a_server_the_client_is_told_what_to_name_or_install(arguments: list[str], says: str) -> None:
    kind, what, where, hint = run(_PIPELINE, *arguments).splitlines()
    assert kind == "UnsupportedByRunner"
    assert what == f"the installed PySpark is only a client of Spark Connect, and {says}"
    assert where == "  in this Python"
    assert "master='sc://host:15002'" in hint
    assert "pip install 'penstock[java]'" in hint


def test_the_doctor_asks_for_no_java() -> None:
    program = "from penstock_conformance.command import main\nprint(main(['doctor', '--quick']))\n"
    lines = run(program).splitlines()
    assert lines[-1] == "0"
    assert any(line.endswith(", which needs a server of Spark Connect") for line in lines)
    assert not any(line.split()[1:2] == ["java"] for line in lines)
