"""Makes the program of the tutorial from its page: ``python docs/tutorial_program.py`` writes docs/tutorial.py."""

from __future__ import annotations

import ast
import doctest
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).with_name("tutorial.md")
PROGRAM = Path(__file__).with_name("tutorial.py")
_PART = re.compile(r"^## ([^\n]+)$|^```pycon[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BEGIN = '''"""The program of penstock's tutorial, section by section: ``python tutorial.py``.

It works in a new folder, whose path it prints first. Beside each ``print`` is what it prints.
"""

import os
import tempfile

folder = tempfile.mkdtemp(prefix="tutorial-")
os.chdir(folder)
print(folder)
'''


def program() -> str:
    """Returns the program: the examples of the page, which print what the page shows."""
    return _BEGIN + "".join(_parts(PAGE.read_text(encoding="utf-8")))


def _parts(page: str) -> Iterator[str]:
    title = ""
    for found in _PART.finditer(page):
        if found[1]:
            title = f"\n# {found[1]}\n"
            continue
        yield title + "\n"
        title = ""
        for example in doctest.DocTestParser().get_examples(found[2]):
            yield _statement(example)


def _statement(example: doctest.Example) -> str:
    source = example.source.rstrip("\n").replace("_ = ", "")
    if not example.want:
        return f"{source}\n" + "\n" * ("\n" in source)
    shown = "".join(f"# {line}\n" for line in _text(example.want).splitlines())
    return f"{_printed(source)}\n{shown}\n"


def _text(want: str) -> str:
    """Returns what `print` shows of a value for which Python's prompt shows this."""
    return str(ast.literal_eval(want)) if want[0] in "'[" else want


def _printed(source: str) -> str:
    """Returns a statement that prints the value of an expression; one that prints already stays."""
    expression = ast.parse(source).body[0]
    assert isinstance(expression, ast.Expr)
    return source if source.startswith("print(") else f"print({source})"


if __name__ == "__main__":
    PROGRAM.write_text(program(), encoding="utf-8")
    subprocess.run(["ruff", "format", "--quiet", PROGRAM], check=True)
