"""Finds the example of each public name in the folder of examples, with the lines above it that it needs."""

from __future__ import annotations

import ast
import builtins
import doctest
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "reference" / "examples"
_BLOCK = re.compile(r"^```pycon[^\n]*\n(.*?)\n+```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^## `(\w+)`\n", re.MULTILINE)


@cache
def examples_by_name() -> dict[str, str]:
    """Returns the example of each name, as a prompt of Python shows it."""
    found = {}
    for page in sorted(FOLDER.glob("*.md")):
        first, *sections = _HEADING.split(page.read_text(encoding="utf-8"))
        shared = list(_statements("\n".join(_BLOCK.findall(first))))
        for name, section in zip(sections[::2], sections[1::2], strict=True):
            code = "\n".join(_BLOCK.findall(section))
            found[name] = _needed(shared, code) + code
    return found


def _needed(shared: list[str], code: str) -> str:
    """Returns the shared statements, as a prompt shows them, that define a name or write a file that the code uses."""
    missing = names_missing_in("".join(_statements(code)))
    taken: list[str] = []
    for statement in reversed(shared):
        tree = ast.parse(statement)
        defined = _stored(tree)
        texts = {each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)}
        if defined & missing or (defined <= {"_"} and any(f'"{text}"' in code for text in texts)):
            missing = missing - defined | names_missing_in(statement)
            taken.insert(0, statement)
    return "".join(map(_at_prompt, taken))


def _at_prompt(statement: str) -> str:
    """Returns a statement with the prompts before its lines."""
    first, *rest = statement.splitlines()
    return "".join(f"{line}\n" for line in (f">>> {first}", *(f"... {line}".rstrip() for line in rest)))


def _statements(prompts: str) -> Iterator[str]:
    """Yields the source of each example of a text with prompts."""
    return (example.source for example in doctest.DocTestParser().get_examples(prompts))


def names_missing_in(source: str) -> set[str]:
    """Returns the names that a program reads and does not define.

    >>> sorted(names_missing_in("beam.Create(rows) | beam.Map(lambda row: row.team)"))
    ['beam', 'rows']
    """
    tree = ast.parse(source)
    read = {
        each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }
    return {name for name in read - _stored(tree) if not hasattr(builtins, name)}


def _stored(tree: ast.AST) -> set[str]:
    """Returns the names that assignments, imports, definitions and arguments define."""
    names = set()
    for each in ast.walk(tree):
        match each:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.alias(name=name, asname=shown):
                names.add(shown or name.partition(".")[0])
    return names
