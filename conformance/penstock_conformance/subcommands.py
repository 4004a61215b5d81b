"""The commands of a command line: their parsers, their help in groups, and errors that name what was meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

from penstock.checks.similar_names import hint_at_name
from penstock.error import three_parts

BAD_INPUT = 2
"""The exit status of a wrong command line."""

_CHOICE = re.compile(r"argument (\S+): invalid choice: '?(.*?)'? \(choose from (.*)\)")
_UNKNOWN = re.compile(r"unrecognized arguments: (.*)")
_NAME = "COMMAND"


class Parser(argparse.ArgumentParser):
    """Reports a wrong command line in three parts, and knows the flag or the command that was meant."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuses unknown arguments of a command, unless it takes the options of pipelines as well."""
        found, others = super().parse_known_args(args, namespace)
        if others and hasattr(found, "run") and not hasattr(found, "flags"):
            self.error(f"unrecognized arguments: {' '.join(others)}")
        return found, others

    def error(self, message: str) -> NoReturn:
        """Ends the program with an error in three parts."""
        what, hint = message, f"see `{self.prog} --help`"
        if choice := _CHOICE.fullmatch(message):
            argument, value, names = choice.groups()
            what = f"{value!r} is not a command" if argument == _NAME else f"{argument} cannot be {value!r}"
            hint = hint_at_name(value, re.findall(r"[\w.-]+", names), hint if argument == _NAME else None)
        elif unknown := _UNKNOWN.fullmatch(message):
            first = unknown[1].split()[0].partition("=")[0]
            if first.startswith("-"):
                what = f"`{self.prog}` has no flag {first}"
                hint = hint_at_name(first, self._flags(), hint)
            else:
                what = f"`{self.prog}` takes no argument {first!r} here"
        self.exit(BAD_INPUT, f"{three_parts(what, hint=hint)}\n")

    def _flags(self) -> list[str]:
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]


class Commands:
    """The commands of a program.

    Args:
        parser: The parser of the program.
        groups: The names of commands that its help shows together, by the title of each group.
    """

    def __init__(self, parser: Parser, groups: Mapping[str, Sequence[str]]) -> None:
        self._parser = parser
        self._groups = groups
        self._helps: dict[str, str] = {}
        self._commands = parser.add_subparsers(
            required=True, metavar=_NAME, help=argparse.SUPPRESS, prog=parser.prog
        )

    def add_parser(
        self, name: str, *, help: str, description: str | None = None, epilog: str | None = None
    ) -> argparse.ArgumentParser:
        """Adds the parser of a command.

        Args:
            name: The name of the command.
            help: What it does, in a few words.
            description: What it does.
            epilog: An example.
        """
        self._helps[name] = help
        made: argparse.ArgumentParser = self._commands.add_parser(
            name, description=description or f"{help[0].upper()}{help[1:]}.", epilog=epilog
        )
        return made

    def render_groups(self) -> str:
        """Returns the commands with what they do, in groups; those that are in no group come last."""
        grouped = {name for names in self._groups.values() for name in names}
        others = [name for name in self._helps if name not in grouped]
        width = max(map(len, self._helps), default=0)
        lines = []
        for title, names in {**self._groups, "more": others}.items():
            if known := [name for name in names if name in self._helps]:
                lines += [f"{title}:", *(f"  {name:<{width}}  {self._helps[name]}" for name in known), ""]
        return "\n".join(lines).rstrip()
