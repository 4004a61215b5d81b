"""An option as one record, which defines its flag, the checks of its value, and its lines in the help and the docs."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.checks.similar_names import hint_at_name
from penstock.error import three_parts
from penstock.options.value_provider import ValueProvider


@dataclass(frozen=True)
class Ignored:
    """The effect of an option that can be set and read, but has no effect: a run with it logs a warning."""

    instead: str
    """The option or the step to use instead, or the reason why this one has no effect."""
    is_in_batch_only: bool = False


@dataclass(frozen=True)
class Refused:
    """The effect of an option without which a program would fail later, or pass without its check: an error."""

    instead: str
    """The advice to the user."""


@dataclass(frozen=True)
class Requirement:
    """Another option, without which an option has no effect."""

    name: str
    hint: str
    so: str = ""
    """The consequence of its absence."""


@dataclass(frozen=True)
class Option:
    """An option of a pipeline.

    Attributes:
        name: The name of its value, and of its flag.
        type: ``str``, ``int``, ``float``, ``bool`` for a switch, ``list`` for a flag that can be repeated, ``dict`` for
            JSON objects that are merged, or an ``argparse.Action``.
        default: Its value if it is not set.
        help: What it means, for ``--help`` and the documentation.
        flags: The spellings of its flag, separated by spaces, if they differ from the name.
        sets: What a switch sets.
        choices: The allowed values; empty for all.
        at_least: The minimum.
        at_most: The maximum.
        hint: What to write instead of a number out of these bounds, if the minimum alone is not a hint.
        check: Returns further errors of a value, each a message in parts; called with values that fit all of the above.
        needs: An option without which this one has no effect.
        effect: None if it has the effect that `help` describes.
    """

    name: str
    type: Any = str
    default: Any = None
    help: str = ""
    flags: str = ""
    sets: bool = True
    choices: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    hint: str = ""
    check: Callable[[Any], Iterable[str]] | None = None
    needs: Requirement | None = None
    effect: Ignored | Refused | None = None

    def spellings(self) -> list[str]:
        """Returns its flags, with their dashes."""
        return [f"--{flag}" for flag in (self.flags or self.name).split()]

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments of argparse's ``add_argument``, apart from the flags."""
        common = {"dest": self.name, "default": self.default, "help": self.help}
        if self.type is bool:
            return {**common, "action": "store_true" if self.sets else "store_false"}
        if self.type is list:
            return {**common, "action": "append"}
        if self.type is dict:
            return {**common, "action": MergedObjects}
        if issubclass(self.type, argparse.Action):
            return {**common, "action": self.type}
        return {**common, "type": self.type, "choices": self.choices or None}

    def errors(self, value: object, others: dict[str, Any]) -> Iterator[str]:
        """Yields the errors of a value, each in parts; none if it is None, or a provider of a later value.

        Args:
            value: The value.
            others: The values of other options, by name.

        >>> print(*Option("rounds", int, at_least=1).errors(0, {}))
        rounds is 0
          hint: use an integer above 0
        """
        if value is None or isinstance(value, ValueProvider):
            return
        if isinstance(self.effect, Refused):
            if value and value != self.default:
                what = f"the option {self.name} is refused: this runner cannot follow it"
                yield three_parts(what, hint=self.effect.instead)
            return
        hint = self._hint_of_kind(value) if self.effect is None else None
        if hint is None and not self._is_within(value):
            hint = self.hint or f"use an integer above {(self.at_least or 0) - 1:g}"
        if hint is not None:
            yield three_parts(f"{self.name} is {value!r}", hint=hint)
        elif value == "" and self.default != "" and self.effect is None:
            # It comes from a shell variable that is not set, and would silently mean the default.
            yield three_parts(f"{self.name} is empty", hint=f"give {self.name} a value, or leave it out")
        elif self.needs and value and others.get(self.needs.name) is None:
            what = f"{self.name} is set without a {self.needs.name}{self.needs.so}"
            yield three_parts(what, hint=self.needs.hint)
        elif self.check:
            yield from self.check(value)

    def _is_within(self, value: Any) -> bool:
        least, most = self.at_least, self.at_most
        return (least is None or value >= least) and (most is None or value <= most)

    def _hint_of_kind(self, value: Any) -> str | None:
        """The advice for a value of the wrong kind; None for one of the right kind."""
        if self.choices and value not in self.choices:
            return hint_at_name(str(value), self.choices, f"use one of {', '.join(self.choices)}")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if self.type is bool:
            return None if value in (True, False) else "use True or False"
        if self.type is list:
            if isinstance(value, str):
                return f"use a list: [{value!r}]"
            return None if isinstance(value, list | tuple) else "use a list of strings"
        if self.type is int:
            return None if is_number and value == value // 1 else "use an integer"
        if self.type is float:
            return None if is_number else "use a number"
        if self.type is str:
            return None if isinstance(value, str | os.PathLike) else f"use a string: {str(value)!r}"
        return None


class MergingAction(argparse.Action):
    """An argument that can be repeated: each value is merged with the values before it."""

    def merged(self, so_far: object, value: object) -> Any:
        """Returns the merged value; an ``argparse.ArgumentError`` ends the program with its message."""
        raise NotImplementedError

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Merges the value."""
        setattr(namespace, self.dest, self.merged(getattr(namespace, self.dest), values))


class CommaSeparatedList(MergingAction):
    """Repeated flags and commas both make one list; a value with several ``=`` stays whole.

    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--x", action=CommaSeparatedList)
    >>> parser.parse_args(["--x=a,b=1", "--x=c=d=1,e=2"]).x
    ['a', 'b=1', 'c=d=1,e=2']
    """

    def merged(self, so_far: Any, value: Any) -> list[str]:
        return [*(so_far or ()), *_split(str(value))]


class MergedObjects(MergingAction):
    """Repeated JSON objects make one object; for equal names, the later value counts.

    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--x", action=MergedObjects)
    >>> parser.parse_args(['--x={"a": 1}', '--x={"b": 2}']).x
    {'a': 1, 'b': 2}
    """

    def merged(self, so_far: Any, value: Any) -> dict[str, Any]:
        try:
            return {**(so_far or {}), **json.loads(value)}
        except (ValueError, TypeError):
            raise argparse.ArgumentError(self, "it is not a JSON object") from None


def _split(text: str) -> Iterator[str]:
    start = 0
    for position, character in enumerate(text):
        if character == "," and text.count("=", start, position) <= 1:
            yield from filter(None, [text[start:position].strip()])
            start = position + 1
    yield from filter(None, [text[start:].strip()])
