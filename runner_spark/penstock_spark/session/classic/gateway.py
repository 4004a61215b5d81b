"""Starts the Java process of a driver without secrets on its command line, and ends it if the start is cut short."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.error import RunnerError
from penstock.utils import clock
from penstock_spark.process.environment import environment
from penstock_spark.process.interrupts import defer_signals

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_POLL_SECONDS = 0.05
_FILE = "--properties-file"


@contextlib.contextmanager
def start_java(conf: Mapping[str, str], spark_home: str) -> Iterator[None]:
    """Starts Java and makes PySpark use it within the block; if the block fails, it ends Java and PySpark forgets it.

    PySpark itself would put the properties on the command line, where every user of the machine can read them, and
    would leave the process behind if Ctrl-C came before Java answered.
    """
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] | None = None
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-start-") as folder:
            answer, properties = Path(folder, "answer"), Path(folder, "spark.properties")
            arguments = _arguments(conf, properties)
            with defer_signals():
                process = _launch([f"{spark_home}/bin/spark-submit", *arguments], answer)
            _use(process, *_await_answer(process, answer))
        yield
    except BaseException as error:
        kept = _with_text(error)
        if process is not None:
            _end(process)
            SparkContext._gateway = SparkContext._jvm = None
        if kept is error:
            raise
        raise kept from None


def _with_text(error: BaseException) -> BaseException:
    """The error, in a form that can be read when Java has ended: Py4J asks Java for the text at each reading."""
    kind: type = type(error)
    if kind.__module__ != "py4j.protocol" or not hasattr(error, "java_exception"):
        return error
    text = str(error)
    kept = type(kind.__name__, (kind,), {"__init__": lambda self: None, "__str__": lambda self: text})
    return kept()  # type: ignore[no-any-return]


def _arguments(conf: Mapping[str, str], properties: Path) -> list[str]:
    """Writes the properties to a file that only this user can read; returns the arguments that name the file."""
    words, given = _without_file(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")))
    text = "".join(f"{_escape(name)}={_escape(value)}\n" for name, value in conf.items())
    if given is not None:
        # Spark takes one such file, in which later lines win.
        text = f"{Path(given).read_text(encoding='utf-8')}\n{text}"
    with open(
        os.open(properties, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)
    defaults = [] if given is not None else ["--load-spark-defaults"]
    return [_FILE, str(properties), *defaults, *words]


def _without_file(words: list[str]) -> tuple[list[str], str | None]:
    """A command line without its file of properties, and the name of that file.

    >>> _without_file(["--properties-file", "a", "--name", "b", "pyspark-shell"])
    (['--name', 'b', 'pyspark-shell'], 'a')
    """
    given = None
    rest: list[str] = []
    for word in (each := iter(words)):
        if word == _FILE:
            given = next(each, None)
        elif word.startswith(f"{_FILE}="):
            given = word.partition("=")[2]
        else:
            rest.append(word)
    return rest, given


def _escape(text: str) -> str:
    r"""A name or a value as Java's property files write it.

    >>> print(_escape("a b=c:d\\e\n#é"))
    a\ b\=c\:d\\e\n\#é
    """
    signs = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
    return "".join(signs.get(sign, f"\\{sign}" if sign in " =:#!" else sign) for sign in text)


def _launch(command: list[str], answer: Path) -> subprocess.Popen[bytes]:
    """The process; it ends after this process has ended, because its standard input is then closed."""
    variables = {**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer), "SPARK_CONNECT_MODE": "0"}
    # Java ignores Ctrl-C: this process handles it and says what becomes of the job.
    ignore: Callable[[], Any] = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)  # noqa: E731
    return subprocess.Popen(command, stdin=subprocess.PIPE, env=variables, preexec_fn=ignore)


def _await_answer(process: subprocess.Popen[bytes], answer: Path) -> tuple[int, str]:
    """The port that Java listens on, and the secret that it expects."""
    while not answer.is_file():
        status = process.poll()
        if status is not None:
            raise RunnerError(
                f"Java ended with the status {status} while Spark started",
                where="in the session that the pipeline would run in",
                hint="read Java's messages above; check master, spark_conf, spark.driver.memory and JAVA_HOME",
            )
        clock.sleep(_POLL_SECONDS)
    content = answer.read_bytes()
    length = int.from_bytes(content[4:8])
    return int.from_bytes(content[:4]), content[8 : 8 + length].decode()


def _use(process: subprocess.Popen[bytes], port: int, secret: str) -> None:
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    with environment({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
        gateway: JavaGateway = launch_gateway()  # type: ignore[no-untyped-call]
    gateway.proc = process
    SparkContext._ensure_initialized(gateway=gateway)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    if process.stdin is not None:
        process.stdin.close()
    process.wait()
