"""Writes docs/options.md, the page of all options, from the table of options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from penstock.options import pipeline_options
from penstock.options.base import list_option_classes
from penstock.options.option import Ignored, Option, Refused
from penstock.options.parsing import OptionsParser
from penstock.options.pipeline_options import SparkOptions

PAGE = Path(__file__).parents[2] / "docs" / "options.md"

_HEAD = """# All options

<!-- python tests/sdk/page_of_options.py writes this page from penstock/options/table.py. -->

Options are flags, arguments of `Pipeline(...)` by name, or values of a view:
[where a pipeline runs](running.md#options) explains how to set them. `--help` of a program also shows them.
"""
_REFUSED = """
## Options that are refused

Without these options, a program that relies on them would fail later, or skip a check.

| view | options | what to do instead |
| --- | --- | --- |
"""
_IGNORED = """
## Options without effect

Penstock accepts Beam's other options, so that command lines and programs need no changes. A run names the ones that are
set, and says what to use instead.

| view | options | what to use instead, or why it has no effect |
| --- | --- | --- |
"""


def views() -> list[tuple[str, list[Option]]]:
    """Returns the options of each view of penstock's, the runner's first."""
    found = []
    for view in sorted(list_option_classes(), key=lambda view: (view is not SparkOptions, view.__name__)):
        # The classes of docstrings' examples are not in their modules.
        if getattr(pipeline_options, view.__name__, None) is view:
            parser = OptionsParser()
            view._add_argparse_args(parser)
            found.append((view.__name__, parser.records()))
    return found


def page() -> str:
    """Returns the whole page."""
    return "".join(_parts())


def _parts() -> Iterator[str]:
    yield _HEAD
    for view, options in views():
        rows = [_row(option) for option in options if option.effect is None]
        if rows:
            yield f"\n## `{view}`\n\n| option | what it means |\n| --- | --- |\n" + "".join(rows)
    yield _REFUSED
    yield from _by_reason(Refused)
    yield _IGNORED
    yield from _by_reason(Ignored)


def _by_reason(effect: type[Refused | Ignored]) -> Iterator[str]:
    for view, options in views():
        by_reason: dict[str, list[str]] = {}
        for option in options:
            if isinstance(option.effect, effect):
                is_in_batch_only = isinstance(option.effect, Ignored) and option.effect.is_in_batch_only
                flag = _flag(option) + (" in a batch" if is_in_batch_only else "")
                by_reason.setdefault(option.effect.instead, []).append(flag)
        for instead, flags in by_reason.items():
            yield f"| `{view}` | {', '.join(flags)} | {_cell(instead)} |\n"


def _row(option: Option) -> str:
    default = (
        ""
        if option.default in (None, "", False, []) or not option.sets
        else f" The default is `{option.default}`."
    )
    choices = f" One of {', '.join(f'`{choice}`' for choice in option.choices)}." if option.choices else ""
    return f"| {_flag(option)} | {_cell(option.help)}{choices}{default} |\n"


def _flag(option: Option) -> str:
    return f"`{option.spellings()[-1]}`"


def _cell(text: str) -> str:
    """The text of a cell: flags are code, which a reader can copy, and a page of the documents is a link."""
    text = re.sub(
        r"--\w[\w-]*(=[^\s,;]*(?:\.\.\.|[^\s,;.]))?", lambda flag: f"`{flag[0]}`", text.replace("|", "\\|")
    )
    return text.replace("docs/running.md", "[where a pipeline runs](running.md)")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
