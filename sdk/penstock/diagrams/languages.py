"""Writes the steps of a pipeline in languages that other programs draw or read: Mermaid, DOT and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from penstock.diagrams.colours import DARK
from penstock.diagrams.drawing import Box, Group, Notes, links_of, members_of
from penstock.diagrams.notes import describe_windowing
from penstock.diagrams.steps import StepView
from penstock.graph import Graph, describe, type_name
from penstock.windows.windowing import default_windowing


def mermaid_of(
    steps: Sequence[StepView],
    notes: Notes | None = None,
    *,
    is_dark: bool = False,
    is_horizontal: bool = False,
) -> str:
    """Returns the steps in the language of Mermaid, which many documents draw.

    Args:
        steps: The steps.
        notes: The lines below the labels; by default none.
        is_dark: True for dark colours.
        is_horizontal: True to draw from left to right.

    >>> print(mermaid_of([StepView("Read", "Read"), StepView('Say "a"', "ParDo", ("Read",))]))
    flowchart TD
        s0["Read"]
        s1["Say #quot;a#quot;"]
        s0 --> s1
    """
    members, names = members_of(steps, notes or {}), _names(steps, "s")
    lines = ['%%{init: {"theme": "dark"}}%%'] if is_dark else []
    lines.append(f"flowchart {'LR' if is_horizontal else 'TD'}")

    def write(members: Sequence[Box | Group], indent: str) -> Iterator[str]:
        for member in members:
            if isinstance(member, Group):
                yield f'{indent}subgraph g{next(numbers)}["{_of_mermaid(member.name)}"]'
                yield from write(member.members, indent + "    ")
                yield f"{indent}end"
            else:
                text = "<br/>".join(map(_of_mermaid, (member.name, *member.lines)))
                yield f'{indent}{names[member.label]}["{text}"]'

    numbers = iter(range(len(steps)))
    lines += write(members, "    ")
    for link in links_of(steps):
        arrow = "-.->" if link.is_side else "-->"
        lines.append(f"    {names[link.source]} {arrow} {names[link.target]}")
    return "\n".join(lines)


def _names(steps: Sequence[StepView], letter: str) -> dict[str, str]:
    return {step.label: f"{letter}{number}" for number, step in enumerate(steps)}


def _of_mermaid(text: str) -> str:
    replaced = {"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;"}
    return "".join(replaced.get(each, each if each.isprintable() else " ") for each in text)


def dot_of(
    steps: Sequence[StepView],
    notes: Notes | None = None,
    *,
    is_dark: bool = False,
    is_horizontal: bool = False,
) -> str:
    """Returns the steps in the language of Graphviz; see `mermaid_of`.

    >>> print(dot_of([StepView("Read", "Read"), StepView("Sum", "CombinePerKey", ("Read",))]))
    digraph {
        node [shape=box, style=rounded, fontname="sans-serif"]
        s0 [label="Read"]
        s1 [label="Sum"]
        s0 -> s1
    }
    """
    members, names = members_of(steps, notes or {}), _names(steps, "s")
    lines = ["digraph {", *(["    rankdir=LR"] if is_horizontal else [])]
    node = 'shape=box, style=rounded, fontname="sans-serif"'
    if is_dark:
        paper, ink, quiet = DARK["paper"], DARK["ink"], DARK["quiet"]
        lines += [f'    graph [bgcolor="{paper}", fontcolor="{quiet}", color="{quiet}"]']
        lines += [f'    edge [color="{quiet}"]']
        node += f', color="{quiet}", fontcolor="{ink}"'
    lines.append(f"    node [{node}]")

    def write(members: Sequence[Box | Group], indent: str) -> Iterator[str]:
        for member in members:
            if isinstance(member, Group):
                yield f"{indent}subgraph cluster_{next(numbers)} {{"
                yield f'{indent}    label="{_of_dot(member.name)}"'
                yield from write(member.members, indent + "    ")
                yield f"{indent}}}"
            else:
                text = "\\n".join(map(_of_dot, (member.name, *member.lines)))
                yield f'{indent}{names[member.label]} [label="{text}"]'

    numbers = iter(range(len(steps)))
    lines += write(members, "    ")
    for link in links_of(steps):
        dashed = " [style=dashed]" if link.is_side else ""
        lines.append(f"    {names[link.source]} -> {names[link.target]}{dashed}")
    return "\n".join([*lines, "}"])


def _of_dot(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(each if each.isprintable() else " " for each in escaped)


def json_of(graph: Graph) -> str:
    """Returns the steps of a graph as a list of JSON, with their inputs, and the types and windows of their outputs.

    >>> from penstock.graph import Edge, InlineValues, Output, Read, Step
    >>> print(json_of(Graph((Step("Read", Read(InlineValues((1,))), outputs=(Output(None, 0),)),), (Edge(0, int),))))
    [
      {
        "label": "Read",
        "does": "Read(InlineValues(1 value))",
        "inputs": [],
        "side_inputs": [],
        "outputs": [
          {
            "tag": null,
            "type": "<class 'int'>",
            "windowing": [
              "the global window"
            ]
          }
        ],
        "written_at": null
      }
    ]
    """
    makers = {output.edge: step.label for step in graph.steps for output in step.outputs}
    found = [
        {
            "label": step.label,
            "does": describe(step.primitive),
            "inputs": [makers[edge] for edge in step.inputs],
            "side_inputs": [makers[side.edge] for side in step.side_inputs],
            "outputs": [
                {
                    "tag": output.tag,
                    "type": type_name(graph.edge(output.edge).element_type),
                    "windowing": describe_windowing(graph.edge(output.edge).windowing or default_windowing()),
                }
                for output in step.outputs
            ],
            "written_at": None if step.location is None else str(step.location),
        }
        for step in graph.steps
    ]
    return json.dumps(found, ensure_ascii=False, indent=2)
