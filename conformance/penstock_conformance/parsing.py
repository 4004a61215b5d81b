"""Reads transcripts: text to scenarios. ``transcripts/FORMAT.md`` describes the format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from penstock.machines.records import Event
from penstock_conformance.blocks import Block, Line, blocks_of
from penstock_conformance.body import modes_of, parts_of
from penstock_conformance.citations import names_in
from penstock_conformance.lines import event_of
from penstock_conformance.malformed import Malformed
from penstock_conformance.recordings import in_order
from penstock_conformance.scenario import Scenario

TRANSCRIPTS = Path(__file__).parent / "transcripts"

SETTINGS = (
    *("windows", "trigger", "accumulation", "lateness", "combine"),
    *("timestamp", "on_time", "closing", "input_retracts", "program"),
)
"""The settings of a grouping or another program; `programs.program_of` interprets them."""

_HEADERS = ("source", "shows", *SETTINGS, "input", "engine", "order", "fails", "unmet")
_HEADER = re.compile(r"(\w+):\s*(.+)")
_AS_WRITTEN = "as written"


def load(folder: Path = TRANSCRIPTS) -> tuple[Scenario, ...]:
    """All scenarios of the ``*.transcript`` files in a folder and its subfolders; each folder shares its recordings."""
    by_folder: dict[Path, dict[str, str]] = {}
    for path in sorted(folder.rglob("*.transcript")):
        files = by_folder.setdefault(path.parent, {})
        files[path.relative_to(folder).as_posix()] = path.read_text(encoding="utf-8")
    return tuple(scenario for files in by_folder.values() for scenario in parse(files))


def parse(files: Mapping[str, str]) -> tuple[Scenario, ...]:
    """Parses the scenarios of some files, by file name, that share their recordings.

    >>> text = '''
    ... = One pane
    ... source:  an example
    ... windows: FixedWindows(10)
    ...
    ... element 5 at 3
    ... watermark 10
    ...   -> [5] in [0, 10) on-time
    ... '''
    >>> [(scenario.title, len(scenario.parts[0].steps)) for scenario in parse({"one.transcript": text})]
    [('One pane', 2)]
    """
    blocks = [block for name, text in files.items() for block in blocks_of(name, text)]
    titles: set[tuple[bool, str]] = set()
    for block in blocks:
        if (block.is_recording, block.title) in titles:
            what = f"the title {block.title!r} is used twice in this folder"
            raise Malformed(what, hint="choose another title", place=block.place)
        titles.add((block.is_recording, block.title))
    recordings = {block.title: _recording(block) for block in blocks if block.is_recording}
    return tuple(_scenario(block, recordings) for block in blocks if not block.is_recording)


def _recording(block: Block) -> tuple[Event, ...]:
    events: list[Event] = []
    for line in block.lines:
        try:
            if line.text:
                events.append(event_of(line.text))
                in_order(events[-1:])
        except Malformed as error:
            raise error.at(line.place) from None
    return tuple(events)


def _scenario(block: Block, recordings: Mapping[str, tuple[Event, ...]]) -> Scenario:
    lines = iter(block.lines)
    headers = _headers(lines)
    try:
        for needed in ("source", "windows"):
            if needed not in headers:
                raise Malformed(f"{block.title!r} has no {needed}", hint=f"write `{needed}: ...` below it")
        order = headers.get("order", _AS_WRITTEN)
        if order != _AS_WRITTEN:
            raise Malformed(f"the order is {order!r}", hint=f"write `order: {_AS_WRITTEN}`, or nothing")
        modes = modes_of(headers.get("engine", "streaming"))
        recorded = _recorded(headers.get("input", ""), recordings)
        shown = _shown(headers.get("shows", ""))
    except Malformed as error:
        raise error.at(block.place) from None
    steps = [line for line in lines if line.text]
    return Scenario(
        title=block.title,
        place=block.place,
        source=headers["source"],
        names=tuple(dict.fromkeys((*names_in(headers["source"]), *shown))),
        settings={name: text for name, text in headers.items() if name in SETTINGS},
        # A grouping that cannot be built needs no events.
        parts=() if "fails" in headers and not steps else parts_of(steps, modes, recorded, block.place),
        in_written_order="order" in headers,
        fails=headers.get("fails"),
        unmet=headers.get("unmet"),
    )


def _headers(lines: Iterator[Line]) -> dict[str, str]:
    """The settings, up to the first blank line."""
    headers: dict[str, str] = {}
    for line in lines:
        if not line.text:
            break
        match = _HEADER.fullmatch(line.text)
        if match is None or match[1] not in _HEADERS:
            hint = f"end the settings with a blank line, and use these: {', '.join(_HEADERS)}"
            raise Malformed(f"{line.text!r} is not a setting", hint=hint, place=line.place)
        headers[match[1]] = match[2].strip()
    return headers


def _shown(text: str) -> tuple[str, ...]:
    """The names in a setting ``shows``."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if names_in(name) != (name,):
            what = f"{name!r} is not the name of a figure or a rule"
            raise Malformed(what, hint="write figure 7, figure 2-11, C-100, S6-02")
    return tuple(names)


def _recorded(text: str, recordings: Mapping[str, tuple[Event, ...]]) -> tuple[Event, ...] | None:
    """The events of some recordings together; None if no recording is named."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in recordings:
            hint = f"use a recording of this folder: {', '.join(sorted(recordings)) or 'none'}"
            raise Malformed(f"the recording {name!r} does not exist", hint=hint)
    return in_order(event for name in names for event in recordings[name]) if names else None
