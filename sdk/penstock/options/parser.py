"""The parser of flags: argparse's, with a few kinds of arguments of Beam's."""

from __future__ import annotations

import argparse
import difflib
import functools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, NoReturn

from penstock.error import three_parts
from penstock.options.value_provider import RuntimeValueProvider, StaticValueProvider

_MUCH_ALIKE = 0.7


class OptionsParser(argparse.ArgumentParser):
    """The parser that ``_add_argparse_args`` receives: argparse's, plus arguments whose value may come later.

    A flag that is defined twice takes its later definition. ``--help`` shows the options of all classes.
    """

    def __init__(self) -> None:
        super().__init__(allow_abbrev=False, conflict_handler="resolve", add_help=False)
        self._without_effect: dict[argparse.Action, str] = {}
        self.add_argument("-h", "--help", action=Help)

    def add_without_effect(self, instead: str, *names: str, **kwargs: Any) -> None:
        """Adds an argument that can be given and read, and that a run says is of no effect.

        Args:
            instead: What has the effect, as a clause.
            *names: As of ``add_argument``.
            **kwargs: As of ``add_argument``, without `help`.
        """
        action = self.add_argument(*names, **kwargs, help=f"Of no effect: {instead}.")
        self._without_effect[action] = instead

    def without_effect(self) -> dict[argparse.Action, str]:
        """The arguments that have no effect, each with what has; those that were defined anew are not among them."""
        return {action: text for action, text in self._without_effect.items() if action in self._actions}

    def known_flags(self) -> list[str]:
        """Every flag, with its dashes."""
        return [flag for action in self._actions for flag in action.option_strings]

    def add_value_provider_argument(self, *args: str, **kwargs: Any) -> None:
        """Adds an argument whose value is a ValueProvider (Beam's method).

        Args:
            *args: As of ``add_argument``.
            **kwargs: As of ``add_argument``; `type` and `default` are those of the value, not of the
                provider.

        Raises:
            ValueError: If no name is given.
        """
        if not args or not args[0]:
            raise ValueError(three_parts("a value provider argument has no name", hint="write '--name'"))
        if args[0].startswith("-"):
            option_name = next((name for name in args if name.startswith("--")), args[0]).lstrip("-")
        else:
            option_name = args[0]
            kwargs["nargs"] = kwargs.get("nargs") or "?"
        value_type = kwargs.get("type") or str
        default = RuntimeValueProvider(option_name, value_type, kwargs.get("default"))
        convert = functools.partial(StaticValueProvider, value_type)
        self.add_argument(*args, **{**kwargs, "type": convert, "default": default})


class Help(argparse.Action):
    """Prints the options of all classes that are defined, and ends the program."""

    text: ClassVar[Callable[[], str]]
    """Makes what is printed; `penstock.options.help` sets it, which knows the classes of options."""

    def __init__(self, option_strings: list[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """Prints and ends."""
        print(Help.text())
        parser.exit()


class CommaSeparatedList(argparse.Action):
    """Repeated flags and commas both make one list; a value with several ``=`` stays whole.

    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--x", action=CommaSeparatedList)
    >>> parser.parse_args(["--x=a,b=1", "--x=c=d=1,e=2"]).x
    ['a', 'b=1', 'c=d=1,e=2']
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Adds the items to the list so far."""
        so_far = getattr(namespace, self.dest) or []
        setattr(namespace, self.dest, [*so_far, *_split(str(values))])


class MergedObjects(argparse.Action):
    """Repeated JSON objects make one; of a name that comes twice the later value counts (with ``type=json.loads``)."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Adds an object's members to those so far."""
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), **values})


class AuditEntries(argparse.Action):
    """What Google's log of accesses to files is to note: ``key=value``, or JSON where the flag's name is a plural.

    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--entry", "--entries", dest="entries", action=AuditEntries)
    >>> parser.parse_args(["--entry=user=me", '--entries={"job": "7"}']).entries
    {'x-goog-custom-audit-user': 'me', 'x-goog-custom-audit-job': '7'}
    """

    PREFIX = "x-goog-custom-audit-"
    KEY_CHARACTERS = 64
    VALUE_CHARACTERS = 1200
    ENTRIES = 4
    """With the entry ``job``, which the service adds where it is missing."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Adds the entries to those so far; argparse prints what is wrong, and ends the program."""
        entries = dict(getattr(namespace, self.dest) or {})
        for key, value in self._pairs(values, is_json=str(option_string).endswith("entries")):
            self._check_length("key", key, self.KEY_CHARACTERS)
            self._check_length("value", value, self.VALUE_CHARACTERS)
            entries[key if key.startswith(self.PREFIX) else self.PREFIX + key] = value
        if len({*entries, f"{self.PREFIX}job"}) > self.ENTRIES:
            raise argparse.ArgumentError(
                None,
                "The maximum allowed number of GCS custom audit entries "
                f"(including the default {self.PREFIX}job) is {self.ENTRIES}",
            )
        setattr(namespace, self.dest, entries)

    def _pairs(self, text: str, *, is_json: bool) -> list[tuple[str, str]]:
        if not is_json:
            key, _, value = text.partition("=")
            return [(key, value)]
        try:
            return [(key, str(value)) for key, value in json.loads(text).items()]
        except (ValueError, AttributeError):
            raise argparse.ArgumentError(self, "it is no JSON object") from None

    def _check_length(self, kind: str, text: str, characters: int) -> None:
        if len(text) > characters:
            raise argparse.ArgumentError(
                None,
                f"The {kind} {text!r} in GCS custom audit entries exceeds the {characters}-character limit",
            )


def _split(text: str) -> Iterator[str]:
    start = 0
    for position, character in enumerate(text):
        if character == "," and text.count("=", start, position) <= 1:
            yield from filter(None, [text[start:position].strip()])
            start = position + 1
    yield from filter(None, [text[start:].strip()])


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like a name, if one is much like it.

    >>> nearest("shufle_partitions", ["mode", "shuffle_partitions"])
    'shuffle_partitions'
    """
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=_MUCH_ALIKE)
    return close[0] if close else None
