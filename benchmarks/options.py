"""The options that the programs for streams share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from outcome import FOLDER

ROOT = Path(__file__).parents[1]

_ELSEWHERE = ("runs", "cores", "folder", "results")
"""The options that do not say how much is measured, or of whom."""


def parsed_settings(
    parser: argparse.ArgumentParser,
    given: Sequence[str] | None,
    contenders: Iterable[str],
    results: str,
    unasked: Iterable[str] = (),
) -> argparse.Namespace:
    """Adds the shared options to a program's own, and parses; `unasked` contenders run only on request.

    Full runs write the file of numbers to where results are kept; others do not.
    """
    names = list(contenders)
    usual = [name for name in names if name not in unasked]
    parser.add_argument("--contenders", nargs="+", choices=names, default=usual)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="default: all")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "benchmarks", help="for data, logs")
    parser.add_argument("--results", type=Path, help="the file to write")
    settings = parser.parse_args(given)
    settings.folder = settings.folder.resolve()
    is_full = all(
        value == parser.get_default(name) for name, value in vars(settings).items() if name not in _ELSEWHERE
    )
    settings.results = settings.results or (FOLDER if is_full else settings.folder) / results
    return settings
