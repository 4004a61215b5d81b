"""Writes down which step a worker runs, where Spark still finds it when the worker has died.

With Spark's fault handler, each worker has a file into which Python writes the stack if the worker crashes. Spark
adds the content of the file to the error of a dead worker, and deletes the file otherwise. Our file begins with two
digits, the number of the running step, and the signed list of all steps. Changing the digits is a write into memory.
"""

from __future__ import annotations

import base64
import faulthandler
import json
import mmap
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from penstock.metrics.execution import note_current_in
from penstock.where import OUR_PACKAGES
from penstock_spark.reports.reporting import current_reporting

FAULT_HANDLER = "spark.sql.execution.pyspark.udf.faulthandler.enabled"
"""The session's setting that lets each worker write such a file.

Stateful operators read a setting of the whole Spark application, ``penstock_spark.session.session.FAULT_HANDLER``.
"""

_FOLDER = "PYTHON_FAULTHANDLER_DIR"
_ZERO, _DIGITS = ord("0"), 64
_LAST = _DIGITS * _DIGITS - 1
_WRITTEN = re.compile(r"([0-o])([0-o]) penstock-steps<([0-9a-f]{64}):([A-Za-z0-9+/=]+)>")
_FATAL = re.compile(r"^Fatal Python error: ([\w :().-]{1,80})$", re.MULTILINE)
_FRAME = re.compile(r'^  File "([^"\n]{1,300})", line (\d+) in (\S{1,100})$', re.MULTILINE)
_OURS = re.compile(rf"[/\\]({'|'.join(OUR_PACKAGES)}|pyspark)[/\\]|pyspark\.zip|[/\\]penstock-[^/\\]*\.zip")


@dataclass(frozen=True)
class WorkerDeath:
    """The notes that a dead worker has left."""

    where: str | None  # The step that ran, as the second line of an error; None if unknown.
    steps: tuple[str, ...]  # All steps of its stage, likewise.
    # Python's name of the crash, such as ``Segmentation fault``; None if Python did not notice a crash.
    fault: str | None = None
    line: str | None = None  # The line of the user's program that crashed; None if unknown.


class _Written:
    """The file of this worker, and its first two bytes mapped into memory."""

    file: Any = None
    digits: Any = None


def digits_of(number: int) -> int:
    """A step's number as its two digits lie in memory; 0 stands for no step.

    >>> digits_of(1).to_bytes(2, sys.byteorder)
    b'01'
    """
    high, low = divmod(min(number, _LAST), _DIGITS)
    return int.from_bytes(bytes([_ZERO + high, _ZERO + low]), sys.byteorder)


def number_steps(steps: Iterable[Any]) -> dict[str, tuple[int, str]]:
    """The number and the place of each step, by label; skips objects without a label or a place."""
    places: dict[str, str] = {}
    for step in steps:
        if hasattr(step, "label") and hasattr(step, "where"):
            places.setdefault(step.label, step.where)
    return {label: (number, where) for number, (label, where) in enumerate(places.items(), start=1)}


def record_steps(steps: Mapping[str, tuple[int, str]]) -> None:
    """Makes the worker write down which of the `number_steps` steps runs, from now on."""
    folder = os.environ.get(_FOLDER)
    if folder is None:
        return
    packed = base64.b64encode(json.dumps([where for _, where in steps.values()]).encode()).decode("ascii")
    content = f"00 penstock-steps<{current_reporting().signature(packed)}:{packed}>\n".encode()
    # Without the file, an error only says less.
    with suppress(OSError, ValueError):
        if _Written.file is None:
            _Written.file = open(os.path.join(folder, str(os.getpid())), "r+b", buffering=0)  # noqa: SIM115
        file = _Written.file
        file.seek(0)
        file.write(content)
        file.truncate()
        if _Written.digits is None:
            _Written.digits = memoryview(mmap.mmap(file.fileno(), 2)).cast("H")
            # If the worker crashes, Python writes after this content.
            faulthandler.enable(file=file)
        note_current_in(_Written.digits)


def record_no_step() -> None:
    """Notes that no step runs: whatever the worker does next belongs to another task."""
    if _Written.digits is not None:
        _Written.digits[0] = digits_of(0)


def find_worker_death(text: str) -> WorkerDeath | None:
    """Finds the notes that a worker of this run left before it died, in an error text from Spark."""
    reporting = current_reporting()
    for match in _WRITTEN.finditer(text):
        high, low, signature, packed = match.groups()
        if not reporting.has_signed(packed, signature):
            continue
        steps = tuple(json.loads(base64.b64decode(packed)))
        number = (ord(high) - _ZERO) * _DIGITS + ord(low) - _ZERO
        where = steps[number - 1] if 0 < number <= len(steps) else None
        rest = text[match.end() :]
        fatal = _FATAL.search(rest)
        if fatal is None:
            return WorkerDeath(where, steps)
        return WorkerDeath(where, steps, fatal[1], _line(rest[fatal.end() :]))
    return None


def _line(stack: str) -> str | None:
    for path, number, function in _FRAME.findall(stack):
        if not _OURS.search(path) and os.sep + "lib" + os.sep + "python" not in path:
            return f"{os.path.basename(path)}:{number} in {function}"
    return None
