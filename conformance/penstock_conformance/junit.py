"""A run as a JUnit file, which continuous integration reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from penstock_conformance.choosing import file_of
from penstock_conformance.outcomes import Outcome, Status

_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that an XML file cannot hold."""


def junit_xml(outcomes: Sequence[Outcome]) -> str:
    """The text of the file: a suite for each mode, a case for each scenario.

    >>> junit_xml([]).splitlines()[1]
    '<testsuites name="penstock conformance" tests="0" failures="0" skipped="0" />'
    """
    root = ElementTree.Element("testsuites", {"name": "penstock conformance", **_counted(outcomes)})
    for mode in dict.fromkeys(outcome.mode for outcome in outcomes):
        of_mode = [outcome for outcome in outcomes if outcome.mode == mode]
        seconds = sum(outcome.seconds for outcome in of_mode)
        about = {"name": mode, "time": f"{seconds:.3f}", **_counted(of_mode)}
        suite = ElementTree.SubElement(root, "testsuite", about)
        for outcome in of_mode:
            _add(suite, outcome)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _counted(outcomes: Sequence[Outcome]) -> dict[str, str]:
    statuses = [outcome.status for outcome in outcomes]
    return {
        "tests": str(len(statuses)),
        "failures": str(statuses.count(Status.FAILED)),
        "skipped": str(statuses.count(Status.NOT_PLAYED)),
    }


def _add(suite: ElementTree.Element, outcome: Outcome) -> None:
    scenario = outcome.scenario
    name = f"{scenario.title} ({outcome.mode})"
    case = ElementTree.SubElement(
        suite, "testcase", classname=file_of(scenario), name=name, time=f"{outcome.seconds:.3f}"
    )
    text = _NO_XML.sub("?", outcome.text)
    match outcome.status:
        case Status.FAILED:
            first = text.splitlines()[1].strip() if "\n" in text else text
            ElementTree.SubElement(case, "failure", message=first).text = text
        case Status.NOT_PLAYED:
            ElementTree.SubElement(case, "skipped", message=text)
        case Status.DIFFERS:
            ElementTree.SubElement(
                case, "system-out"
            ).text = "differs by the model from the figure's own mode"
