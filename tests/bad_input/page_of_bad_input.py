"""Writes docs/bad_input.md, the table of what users see for bad input, from its rows."""

from __future__ import annotations

import html
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tests.bad_input.rows import Row, Subject

PAGE = Path(__file__).parents[2] / "docs" / "bad_input.md"

SUBJECTS: tuple[Subject, ...] = tuple(
    import_module(f"tests.bad_input.rows_{name}").SUBJECT
    for name in (
        *("options", "spark_options", "pipelines", "user_code", "types", "keys", "windows", "files", "read"),
        *("sinks", "written", "sql", "state", "streams", "checkpoints", "coders", "servers"),
    )
)

_HEAD = """# Bad input: what you write, and what you see

<!-- python -m tests.bad_input.page_of_bad_input writes this page; every row is a test. -->

This page shows {count} small programs with something wrong or unusual in them, and what each prints: the last lines of
its error, word for word, or its output. Penstock's own errors say what is wrong, where, and what to do. Most are
raised while the pipeline is built, or before anything starts; the rows that say *runs* need Spark.

`import penstock as beam` precedes the first line of every program, `p` is a `beam.Pipeline()`, and the file is
{program}. The program runs in the folder `{folder}`.

"""


def page() -> str:
    """Returns the whole page."""
    count = sum(len(subject.rows) for subject in SUBJECTS)
    parts = [_HEAD.format(count=count, program="game.py", folder="/data")]
    parts += [f"- [{subject.title}](#{_anchor(subject.title)})" for subject in SUBJECTS]
    for subject in SUBJECTS:
        parts += ["", f"## {subject.title}", ""]
        parts += [subject.words, ""] if subject.words else []
        parts += ["<table>", "<tr><th>you write</th><th>you see</th></tr>"]
        parts += [line for row in subject.rows for line in _row(row)]
        parts.append("</table>")
    return parts[0] + "\n".join(parts[1:]) + "\n"


def _row(row: Row) -> Iterator[str]:
    runs = " (runs)" if row.on_spark else ""
    yield f"<tr><td>{html.escape(row.name, quote=False)}{runs}"
    for name, content in row.files.items():
        yield f"<br><code>{html.escape(name)}</code>: <code>{html.escape(_shown(content), quote=False)}</code>"
    yield f"<pre>{_escaped(row.program)}</pre></td>"
    yield f"<td><pre>{_escaped(row.seen)}</pre></td></tr>"


def _shown(content: str | bytes) -> str:
    """The content of a file as a text of Python's, cut if it is long."""
    text = repr(content)
    return text if len(text) <= 120 else f"{text[:100]} ..."


def _escaped(text: str) -> str:
    """A text in HTML; an empty line would end the table."""
    return html.escape(text, quote=False).replace("\n\n", "\n&#10;")


def _anchor(title: str) -> str:
    kept = [letter for letter in title.lower() if letter.isalnum() or letter in " -"]
    return "".join(kept).replace(" ", "-")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
