"""Which names of Beam's a test may ask of penstock: the public ones that docs/beam_names.md does not leave out."""

from __future__ import annotations

import functools
import inspect
import json
import re
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).parents[2]


@functools.cache
def _public() -> dict[str, dict[str, list[str]]]:
    names: dict[str, dict[str, list[str]]] = json.loads(
        (ROOT / "tests/sdk/data/beam_names.json").read_text(encoding="utf-8")
    )
    return names


@functools.cache
def _left_out() -> set[str]:
    """The dotted names in the tables of docs/beam_names.md, with their modules."""
    text = (ROOT / "docs/beam_names.md").read_text(encoding="utf-8")
    found = set()
    for module, part in re.findall(r"^### (apache_beam\S*)\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL):
        for row in re.findall(r"^\| (`[^|]*) \|", part, re.MULTILINE):
            found |= {f"{module}.{name}" for name in re.findall(r"`([\w.]+)`", row)}
    return found


def is_wanted(path: str) -> bool:
    """True if a dotted name is a public one of Beam's that penstock is to have.

    >>> is_wanted("penstock.transforms.core.Map"), is_wanted("penstock.io.textio._TextSource")
    (True, False)
    """
    parts = path.replace("penstock", "apache_beam", 1).split(".")
    if any(part.startswith("_") for part in parts):
        return False
    for count in range(len(parts) - 1, 0, -1):
        module, rest = ".".join(parts[:count]), parts[count:]
        if module in _public():
            return rest[0] in _public()[module] and f"{module}.{rest[0]}" not in _left_out()
    return False


_SAYS_MISSING = re.compile(r"<missing: ([\w.]+)>|penstock has no (penstock[\w.]*\w)")
# A worker's error has no traceback here, and `assertRaises` wraps one of the test's. Penstock asks itself for nothing
# that it does not have.
_PRIVATE = re.compile(r"module '(penstock[\w.]*)' has no attribute '(_[a-zA-Z]\w*)'")
_IN_MODULE = re.compile(r"module '([\w.]+)' has no attribute")
_PROTOCOL = ("to_runner_api", "from_runner_api", "_runner_api")
_BESIDE = ("contextlib.py", "importlib", "mock.py", "pkgutil.py", "penstock/absent.py")


def inner_part(error: BaseException, package: str) -> str | None:
    """The name that a failed test asked for, if it is an inner part of Beam's or is left out; None if it is neither.

    Only what the test's own code asked for counts: an attribute that penstock's code misses is a defect.

    Args:
        error: What the test raised.
        package: The package of the ported modules.
    """
    for groups in _SAYS_MISSING.findall(str(error)):
        path = "".join(groups)
        if not is_wanted(path):
            return path
    if asked := _PRIVATE.search(str(error)):
        return f"{asked[1]}.{asked[2]}"
    if not isinstance(error, AttributeError | ImportError) or not _is_raised_in(error.__traceback__, package):
        return None
    if isinstance(error, ImportError):
        asked = re.search(r"cannot import name '(\w+)'", str(error))
        path = f"{error.name}.{asked[1]}" if asked else str(error.name)
        return path if path.startswith("penstock") and not is_wanted(path) else None
    name = error.name or (re.findall(r"attribute '(\w+)'", str(error)) or [""])[-1]
    if in_module := _IN_MODULE.match(str(error)):
        path = f"{in_module[1]}.{name}"
        return path if path.startswith("penstock") and not is_wanted(path) else None
    is_inner = name.startswith("_") and not name.startswith("__")
    return name if is_inner or any(part in name for part in _PROTOCOL) else None


def _is_raised_in(trace: TracebackType | None, package: str) -> bool:
    """True if the innermost frame is the test's, but for a module's ``__getattr__``, mocks and Python's importing.

    A decorator ``mock.patch`` asks for its name before the test begins; its frame counts as that of the test.
    """
    last = None
    while trace is not None:
        code = trace.tb_frame.f_code
        patched = trace.tb_frame.f_locals.get("func") if code.co_name == "patched" else None
        if callable(patched):
            last = inspect.unwrap(patched).__code__.co_filename
        elif code.co_name != "__getattr__" and not any(each in code.co_filename for each in _BESIDE):
            last = code.co_filename
        trace = trace.tb_next
    return last is not None and package in last
