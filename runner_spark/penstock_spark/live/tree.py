"""A run as a tree in a terminal, drawn with the optional package rich: its steps, watermarks and panes."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from penstock.machines.records import MAX_MICROS
from penstock_spark.live.elements import StepElements
from penstock_spark.live.formatting import (
    escape_control_characters,
    format_count,
    format_elements,
    format_lag,
    format_moment,
)
from penstock_spark.live.pace import FALLING_BEHIND
from penstock_spark.live.progress import render_bar, render_last_line
from penstock_spark.live.snapshot import GroupingNow, MicroBatch, RunSnapshot, SourceNow

_MICRO_BATCHES = 1
_PHASES = {"triggerExecution": "in all", "addBatch": "work", "queryPlanning": "planning"}
_REST = "dim"


def draw_tree(now: RunSnapshot) -> Group:
    """Returns the tree of a snapshot, and a line about the last micro-batch.

    >>> now = RunSnapshot("scores", "a", "streaming", "RUNNING", 0, 2_000_000, groupings=(GroupingNow("Sum", 1),))
    >>> console = Console(width=60)
    >>> with console.capture() as taken:
    ...     console.print(draw_tree(now))
    >>> "Sum" in taken.get()
    True
    """
    parts: list[Text | Tree | Table] = [_head(now)]
    if now.stages is not None:
        parts.append(Text(render_bar(now, 100)))
    if now.sources or now.groupings or now.elements:
        parts.append(_tree(now))
    for batch in now.micro_batches[-_MICRO_BATCHES:]:
        parts.append(_batch(batch))
    parts += [
        Text(f"{error.kind} {escape_control_characters(error.where)}", style="bold red")
        for error in now.errors
    ]
    return Group(*parts)


def _batch(batch: MicroBatch) -> Text:
    times = [f"{word} {batch.millis[name]} ms" for name, word in _PHASES.items() if name in batch.millis]
    return Text(
        f"micro-batch {batch.number}: {format_count(batch.rows)} rows, {', '.join(times)}", style=_REST
    )


def _head(now: RunSnapshot) -> Text:
    head = Text()
    head.append(escape_control_characters(now.name) or "run", style="bold")
    head.append(f"  {now.state}", style="green" if now.state == "RUNNING" else "yellow")
    if now.pace is not None:
        head.append(f"  {now.pace.doing}", style="yellow" if now.pace.doing == FALLING_BEHIND else "green")
    head.append(f"  {now.mode}, {format_lag(now.at_micros - now.began_micros)}")
    if now.processing_lag_micros is not None:
        head.append(f", {format_lag(now.processing_lag_micros)} behind the clock")
    if now.rows_in is not None:
        head.append(f", {format_count(now.rows_in)} rows in")
    if now.rows_per_second is not None:
        head.append(f", {format_count(now.rows_per_second)} a second")
    return head


def _tree(now: RunSnapshot) -> Tree:
    """Sources, groupings and composites, with what is in them below; other steps only at the top of the pipeline."""
    tree = Tree("", hide_root=True, guide_style=_REST)
    branches: dict[str, Tree] = {}
    elements = {one.label: one for one in now.elements}
    whole = {one.label: one for one in now.composites}

    def under(label: str) -> tuple[Tree, str]:
        above, _, last = label.rpartition("/")
        if not above:
            return tree, last
        if above not in branches:
            parent, name = under(above)
            branches[above] = parent.add(_step(name, whole.get(above)))
        return branches[above], last

    sources = {source.label: source for source in now.sources}
    groupings = {grouping.label: grouping for grouping in now.groupings}
    for label in dict.fromkeys([*elements, *sources, *groupings]):
        if label in sources:
            branch, name = under(label)
            branch.add(_source(sources[label], name, elements.get(label)))
        elif label in groupings:
            branch, name = under(label)
            branch.add(_grouping(groupings[label], name, elements.get(label)))
        elif "/" in label:
            # The branch of its outermost composite shows how many elements come out of it.
            under(f"{label.partition('/')[0]}/")
        else:
            tree.add(_step(label, elements[label]))
    return tree


def _step(name: str, elements: StepElements | None) -> Text:
    text = Text(escape_control_characters(name))
    return text if elements is None else text.append(f"  {format_elements(elements)}", style=_REST)


def _source(source: SourceNow, name: str, elements: StepElements | None) -> Text:
    text = Text(escape_control_characters(name), style="bold cyan")
    details = [f"{format_count(source.rows)} rows"]
    if source.rows_per_second is not None:
        details.append(f"{format_count(source.rows_per_second)} a second")
    if elements is not None:
        details.append(f"{format_count(elements.elements_out)} elements")
    if source.backlog is not None:
        details.append(f"{format_count(source.backlog)} not read yet")
    if source.partitions is not None:
        details.append(f"{source.partitions} partitions")
    if source.skew:
        details.append(f"skew {format_count(source.skew)}")
    if source.rejected:
        details.append(f"{format_count(source.rejected)} rejected")
    return text.append(f"  {' · '.join(details)}", style="not bold default")


def _grouping(grouping: GroupingNow, name: str, elements: StepElements | None) -> Text:
    text = Text(escape_control_characters(name), style="bold")
    has_ended = grouping.output_micros is not None and grouping.output_micros >= MAX_MICROS
    mark = "has ended" if has_ended else f"watermark {format_moment(grouping.output_micros)}"
    text.append(f"  {mark}", style="not bold")
    if grouping.event_lag_micros is not None:
        text.append(f", {format_lag(grouping.event_lag_micros)} behind", style="not bold")
    if elements is not None:
        text.append(f"\n{format_elements(elements)}", style="not bold dim")
    text.append(f"\n{format_count(grouping.open_keys)} open keys", style="not bold dim")
    if grouping.open_windows is not None:
        text.append(f", {format_count(grouping.open_windows)} open windows", style="not bold dim")
    if grouping.panes is not None:
        text.append(f" · panes: {format_count(grouping.early)} early", style="not bold blue")
        text.append(f", {format_count(grouping.on_time)} on time", style="not bold green")
        text.append(f", {format_count(grouping.late)} late", style="not bold yellow")
    if grouping.retracted:
        text.append(f" · {format_count(grouping.retracted)} retracted", style="not bold magenta")
    if grouping.dropped:
        text.append(f" · {format_count(grouping.dropped)} dropped", style="not bold red")
    if grouping.held_by:
        text.append(f"\nheld by {escape_control_characters(grouping.held_by)}", style="not bold dim")
    return text


class LiveTree:
    """Draws each snapshot over the last one; output of the program goes above it.

    Args:
        out: The terminal.
    """

    def __init__(self, out: TextIO) -> None:
        self._console = Console(file=out)
        self._live = Live(console=self._console, auto_refresh=False, redirect_stderr=False)
        self._has_begun = False
        self.is_over = False

    def show(self, now: RunSnapshot) -> None:
        """Draws a snapshot."""
        if not self._has_begun:
            self._live.start()
            self._has_begun = True
        self._live.update(draw_tree(now), refresh=True)
        if now.is_over:
            self.close()
            self._console.print(Text(f"penstock: {render_last_line(now)}"))

    def close(self) -> None:
        """Leaves the last drawing where it is."""
        self.is_over = True
        if self._has_begun:
            self._live.stop()
            self._has_begun = False
