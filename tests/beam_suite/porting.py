"""Beam's own test modules, read where apache_beam is installed and written anew with penstock's imports."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = "beam_suite_ported"
"""The package that holds the ported modules; what Beam has under ``apache_beam.io`` is in its ``io``."""
PLACEHOLDERS = "beam_suite_placeholders"
_BEAM = "apache_beam"


@dataclass(frozen=True)
class Modules:
    """What of Beam is ported: see `modules.toml`."""

    tests: tuple[str, ...]
    support: tuple[str, ...]
    left_out: dict[str, str]
    left_out_tests: dict[str, str]
    in_one_process: dict[str, str]
    placeholders: dict[str, dict[str, str]]

    @classmethod
    def read(cls, path: Path = HERE / "modules.toml") -> Modules:
        """The lists of a file."""
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return cls(
            tuple(data["tests"]),
            tuple(data["support"]),
            data["left_out"],
            data["left_out_tests"],
            data["in_one_process"],
            data["placeholders"],
        )

    def reason(self, module: str) -> str | None:
        """Why a test module is left out; None if nothing says so."""
        return next((why for pattern, why in self.left_out.items() if fnmatch(module, pattern)), None)


def expected_failures(which: str = "expected_failures") -> dict[str, str]:
    """The reason of each expected failure by the test's name, such as ``io/utils_test.py::Class::test``.

    Args:
        which: ``expected_failures``, or ``on_spark`` for those that fail with Spark only.
    """
    text = (HERE / f"{which}.toml").read_text(encoding="utf-8")
    data: dict[str, dict[str, str]] = tomllib.loads(text)
    return {f"{module}::{test}": why for module, tests in data.items() for test, why in tests.items()}


def beam_folder() -> Path:
    """The folder of the installed apache_beam, found without importing it."""
    specification = importlib.util.find_spec(_BEAM)
    if specification is None or specification.origin is None:
        raise ModuleNotFoundError("apache_beam is not installed: pip install 'penstock[oracle]'")
    return Path(specification.origin).parent


def beam_test_modules() -> list[str]:
    """Every test module of the installed apache_beam, such as ``io/textio_test.py``."""
    folder = beam_folder()
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*_test.py"))


def port(into: Path, modules: Modules) -> Path:
    """Writes the ported modules into a folder, which must then be on the import path.

    Args:
        into: An empty folder.
        modules: What to port.

    Returns:
        The folder of the package.
    """
    source, target = beam_folder(), into / PACKAGE
    target.mkdir(parents=True)
    shutil.copyfile(HERE / "placeholders.py", into / f"{PLACEHOLDERS}.py")
    paths = sorted({*modules.tests, *_found(source, modules.support)})
    names = {_module_name(path) for path in paths if path.endswith(".py")}
    for path in paths:
        written = target / path
        written.parent.mkdir(parents=True, exist_ok=True)
        if not path.endswith(".py"):
            shutil.copyfile(source / path, written)
            continue
        for folder in (written.parent, *written.parent.relative_to(into).parents):
            (into / folder / "__init__.py").touch()
        (into / "__init__.py").unlink(missing_ok=True)
        text = (source / path).read_text(encoding="utf-8")
        for expression, module in modules.placeholders.get(path, {}).items():
            placeholder = f"_taken({module!r}, {expression.partition('.')[2]!r})"
            text = re.sub(rf"(?<![\w'.]){re.escape(expression)}\b", placeholder, text)
        written.write_text(ported(text, _module_name(path), names), encoding="utf-8")
    return target


def _found(folder: Path, patterns: tuple[str, ...]) -> Iterator[str]:
    for pattern in patterns:
        yield from (path.relative_to(folder).as_posix() for path in folder.glob(pattern))


def _module_name(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def ported(text: str, name: str, names: set[str]) -> str:
    """A module's text with penstock's names for Beam's, line by line where it was.

    Args:
        text: The module.
        name: Its name, without ``apache_beam.`` in front.
        names: The modules that are ported too, without ``apache_beam.`` in front.
    """
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            around = [_BEAM, *name.split(".")][: -node.level]
            node.module = ".".join([*around, *([node.module] if node.module else [])])
        if isinstance(node, ast.Import | ast.ImportFrom) and _is_of_beam(node):
            lines[node.lineno - 1] = "; ".join(_imports(node, names))
            for number in range(node.lineno, node.end_lineno or node.lineno):
                lines[number] = ""
    return _renamed(_opened("\n".join(lines), text), names) + "\n"


def _is_of_beam(node: ast.Import | ast.ImportFrom) -> bool:
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
    return any(module.split(".")[0] == _BEAM for module in modules)


def _imports(node: ast.Import | ast.ImportFrom, names: set[str]) -> Iterator[str]:
    """Statements that bind what an import binds, or a placeholder."""
    for each in node.names:
        if isinstance(node, ast.Import):
            if each.asname is None:
                yield f"import {each.name.split('.')[0]}; _taken({each.name!r})"
            else:
                yield f"{each.asname} = _taken({each.name!r})"
        elif each.name == "*":
            yield f"from {node.module} import *"
        elif f"{node.module}.{each.name}".removeprefix(f"{_BEAM}.") in names:
            module = f"{PACKAGE}{str(node.module).removeprefix(_BEAM)}"
            yield f"from {module} import {each.name} as {each.asname or each.name}"
        else:
            yield f"{each.asname or each.name} = _taken({node.module!r}, {each.name!r})"


def _opened(text: str, original: str) -> str:
    """The text with the import of the placeholders before its first statement, and the count of loading modules."""
    nodes = ast.parse(original).body
    while nodes and (_is_docstring(nodes[0]) or _is_future(nodes[0])):
        del nodes[0]
    lines = text.split("\n")
    first = nodes[0].lineno - 1 if nodes else len(lines)
    opening = f"from {PLACEHOLDERS} import taken as _taken, loading as _loading; _loading[0] += 1"
    if first and not lines[first - 1].split("#")[0].strip():
        lines[first - 1] = opening
    else:
        lines[first] = f"{opening}; {lines[first]}".rstrip("; ")
    return "\n".join(lines) + "\n_loading[0] -= 1"


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _renamed(text: str, names: set[str]) -> str:
    """The text with every dotted name of Beam's, in code and in strings, under its new name."""

    def renamed(match: re.Match[str]) -> str:
        parts = match[0].split(".")[1:]
        for count in range(len(parts), 0, -1):
            if ".".join(parts[:count]) in names:
                return ".".join([PACKAGE, *parts])
        # A string that goes on in the next line may end in the middle of a module's name.
        goes_on = text[match.end() : match.end() + 2] in (".'", '."')
        if goes_on and any(name.startswith(".".join([*parts, ""])) for name in names):
            return ".".join([PACKAGE, *parts])
        return ".".join(["penstock", *parts])

    return re.sub(rf"\b{_BEAM}\b(?:\.\w+)*", renamed, text)
