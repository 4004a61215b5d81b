"""What ``--help`` prints: the options of all classes that are defined, by class."""

from __future__ import annotations

import argparse
import inspect
import os
import sys

from penstock.options.base import PipelineOptions, all_classes
from penstock.options.parser import Help, OptionsParser

_LAST_WORDS = (
    "Beam's other options, such as those of clouds, can be given too, and have no effect on Spark; a run names those "
    "that are given."
)


def text_of_help() -> str:
    """The options by class: those of the program itself come first, those of penstock's runner follow.

    >>> print(text_of_help())
    usage: ... [options]...SparkOptions: ...
      --mode MODE ...One of batch, micro_batch, streaming...
    """
    parser = OptionsParser()
    sections: list[tuple[type[PipelineOptions], list[argparse.Action]]] = []
    for options_class in all_classes():
        before = len(parser._actions)
        options_class._add_argparse_args(parser)
        sections.append((options_class, parser._actions[before:]))
    effective = set(parser._actions).difference(parser.without_effect())
    formatter = argparse.HelpFormatter(os.path.basename(sys.argv[0]) or "program")
    formatter.add_usage("%(prog)s [options]", [], [])
    for options_class, actions in sorted(sections, key=lambda section: _rank(section[0])):
        shown = [action for action in actions if action in effective]
        if shown:
            formatter.start_section(f"{options_class.__name__}: {_meaning(options_class)}")
            formatter.add_arguments(shown)
            formatter.end_section()
    formatter.add_text(_LAST_WORDS)
    return formatter.format_help().rstrip()


def _rank(options_class: type[PipelineOptions]) -> int:
    if not options_class.__module__.startswith("penstock."):
        return 0
    return 1 if options_class.__module__ == "penstock.options.spark" else 2


def _meaning(options_class: type[PipelineOptions]) -> str:
    """The first sentence of the docstring, without where the name is from."""
    text = inspect.cleandoc(options_class.__doc__ or "options of this program").partition("\n")[0]
    return text.partition(" (Beam's")[0].rstrip(".")


Help.text = staticmethod(text_of_help)
