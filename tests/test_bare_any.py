"""Annotations that are exactly `Any` become fewer: each package has a count, which may only fall."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COUNTS = Path(__file__).with_name("any_counts.json")
"""How many annotations of each package are exactly `Any`."""

PACKAGES = ("sdk", "runner_spark", "connectors", "conformance")


def annotations_of(tree: ast.AST) -> Iterator[ast.expr]:
    """Yields the annotations of parameters, results and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield node.returns


def bare_any_in(text: str) -> int:
    """Returns how many annotations of a module are exactly `Any`.

    >>> bare_any_in("def last(found: list[Any], default: Any) -> Any: ...")
    2
    """
    return sum(map(_is_bare_any, annotations_of(ast.parse(text))))


def _is_bare_any(annotation: ast.expr) -> bool:
    match annotation:
        case ast.Name("Any") | ast.Constant("Any") | ast.Attribute(ast.Name("typing"), "Any"):
            return True
    return False


def count_of(package: str) -> int:
    """Returns how many annotations of a package are exactly `Any`."""
    paths = sorted((ROOT / package).rglob("*.py"))
    return sum(bare_any_in(path.read_text(encoding="utf-8")) for path in paths)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x: Any): ...",
        "def f(*x: Any): ...",
        "def f(**x: Any): ...",
        "def f(*, x: Any = 1): ...",
        "async def f() -> Any: ...",
        "x: Any = 1",
        "class C:\n    x: typing.Any",
        "def f(x: 'Any'): ...",
    ],
)
def test_each_place_counts(text: str) -> None:
    assert bare_any_in(text) == 1


def test_parts_of_other_types_do_not_count() -> None:
    assert bare_any_in("def f(x: list[Any], y: Callable[..., Any]) -> dict[str, Any]: ...") == 0


@pytest.mark.parametrize("package", PACKAGES)
def test_annotations_that_say_nothing_become_fewer(package: str) -> None:
    before = json.loads(COUNTS.read_text(encoding="utf-8"))[package]
    now = count_of(package)
    assert now <= before, "write the type: object for a value that is only passed on, a TypeVar, a Protocol"
    assert now >= before, f"write the new counts into {COUNTS.name}: python tests/test_bare_any.py"


def write_counts() -> None:
    """Writes the counts of now."""
    counts = {package: count_of(package) for package in PACKAGES}
    COUNTS.write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_counts()
