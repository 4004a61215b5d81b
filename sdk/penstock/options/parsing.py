"""The parser of options: argparse's, with options as records, and with arguments whose value may come later."""

from __future__ import annotations

import argparse
import copy
import functools
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from penstock.checks.similar_names import find_nearest
from penstock.error import refusal, three_parts
from penstock.options.option import Option
from penstock.options.value_provider import RuntimeValueProvider, StaticValueProvider

_MUCH_ALIKE = 0.7


class OptionsParser(argparse.ArgumentParser):
    """The parser that ``_add_argparse_args`` receives: argparse's, plus arguments whose value may come later.

    A flag that is defined twice takes its later definition. ``--help`` shows the options of all classes.
    """

    def __init__(self, text_of_help: Callable[[], str] | None = None) -> None:
        # Argparse makes a formatter for each argument that is added, and each would ask for the terminal's width.
        formatter = functools.partial(argparse.HelpFormatter, width=shutil.get_terminal_size().columns - 2)
        super().__init__(
            allow_abbrev=False, conflict_handler="resolve", add_help=False, formatter_class=formatter
        )
        self._options: dict[argparse.Action, Option] = {}
        self._text_of_help = text_of_help or self.format_help
        self.add_argument("-h", "--help", action="help")

    def add(self, option: Option) -> None:
        """Adds an option."""
        self._options[self.add_argument(*option.spellings(), **option.arguments())] = option

    def records(self) -> list[Option]:
        """Returns the options that were added as records, without those whose flags were defined again later."""
        actions = set(self._actions)
        return [option for action, option in self._options.items() if action in actions]

    def arguments(self) -> list[argparse.Action]:
        """Returns the arguments in the order in which they were added, without ``--help``."""
        return [action for action in self._actions if action.dest != "help"]

    def has_effect(self, argument: argparse.Action) -> bool:
        """True if an argument does what its help says."""
        return argument not in self._options or self._options[argument].effect is None

    def require_nothing(self) -> None:
        """Lets every argument be left out."""
        for action in self._actions:
            action.required = False

    def error(self, message: str) -> NoReturn:
        """Prints what is wrong and ends the program; argparse's own method prints every flag before that."""
        what = re.sub("ignored explicit argument (.*)", r"it takes no value, but got \1", message)
        program = os.path.basename(sys.argv[0]) or "program"
        self.exit(2, f"{three_parts(f'{program}: {what}', hint=f'{program} --help shows all options')}\n")

    def values_of(self, flags: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
        """Returns the values by name, and the arguments without a flag; lists and dicts belong to the caller."""
        found, unknown = self.parse_known_args(flags)
        values = {
            name: copy.copy(value) if isinstance(value, (list, dict)) else value
            for name, value in vars(found).items()
        }
        return values, unknown

    def known_flags(self) -> list[str]:
        """Every flag, with its dashes."""
        return [flag for action in self._actions for flag in action.option_strings]

    def add_value_provider_argument(self, *args: str, **kwargs: Any) -> None:
        """Adds an argument whose value is a ValueProvider (Beam's method).

        The arguments are as in ``add_argument``; `type` and `default` describe the value, not the provider.
        """
        if not args or not args[0]:
            what = "a value provider argument has no name"
            raise refusal(ValueError, what, hint="write '--name'")
        if args[0].startswith("-"):
            option_name = next((name for name in args if name.startswith("--")), args[0]).lstrip("-")
        else:
            option_name = args[0]
            kwargs["nargs"] = kwargs.get("nargs") or "?"
        value_type = kwargs.get("type") or str
        default = RuntimeValueProvider(option_name, value_type, kwargs.get("default"))
        convert = functools.partial(StaticValueProvider, value_type)
        self.add_argument(*args, **{**kwargs, "type": convert, "default": default})

    def print_help(self, file: Any = None) -> None:
        """Prints the options of all classes that are defined."""
        print(self._text_of_help(), file=file)


def find_nearest_option(name: str, known: Iterable[str]) -> str | None:
    """Returns the option most similar to a name, or the only one that begins with its words; None if none is similar.

    >>> find_nearest_option("checkpoint", ["checkpoint_location", "mode"])
    'checkpoint_location'
    >>> find_nearest_option("mod", ["model_path", "mode"])
    'mode'
    """
    names = list(known)
    longer = [each for each in names if each.startswith(f"{name}_")]
    return find_nearest(name, names, _MUCH_ALIKE) or (longer[0] if len(longer) == 1 else None)
