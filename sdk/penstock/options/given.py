"""Checks of options that have no effect: they are refused, or named in one warning."""

from __future__ import annotations

import argparse
import copy
import functools
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.base.where import here
from penstock.error import refusal, three_parts
from penstock.options.base import OptionsParser, PipelineOptions, all_classes, nearest_option, shared_parser
from penstock.options.value_provider import ValueProvider

_LOGGER = logging.getLogger(__name__)
_OURS = re.compile(r"penstock|checkpoint|(spark|shuffle|trigger|drain)(_|$)")
"""The beginnings of the names of penstock options, in the form of `_plain`."""

NOT_FLAGS = frozenset({"spark"})
"""The arguments of a pipeline that no command line can give."""


def check_given(options: PipelineOptions) -> None:
    """Refuses mistyped penstock options, and warns of all others that have no effect.

    An option is mistyped if it begins like a penstock option, or equals a known option except for dashes and
    capitals. Programs may have flags that no class of options knows; one warning in a process names them. So it does
    for Beam's options that are known and have no effect.

    >>> check_given(PipelineOptions(["--checkpoint_locatoin=/tmp/here"]))
    Traceback (most recent call last):
        ...
    ValueError: --checkpoint_locatoin is not an option
      at ...
      hint: did you mean --checkpoint_location? Run the program with --help to see all options; if it is a flag of your
      own, pass on only what your parser leaves: parse_known_args()[1]
    """
    parser = shared_parser(all_classes())
    known, rest = parser.values_of(options._flags)
    values = {**known, **options._all_options}
    unknown = list(dict.fromkeys(_names_of(rest)))
    unknown += [f"--{name}" for name in values if name not in known and name not in NOT_FLAGS]
    for flag in unknown:
        _refuse_ours(flag, parser)
    _warn_of_unknown(tuple(f"{flag}{_meant(flag, parser)}" for flag in unknown))
    _warn_of_no_effect(tuple(_without_effect(parser, values)))


def misfits(options: PipelineOptions) -> list[str]:
    r"""Returns an error for each value given by name that no flag could give, such as a text for a switch.

    Flags of the command line have been checked by the parser. Options of a program's own classes may have any values.

    >>> print(*misfits(PipelineOptions([], take_over="yes", drop_state="Sums")), sep="\n")
    take_over is 'yes'
      hint: use True or False
    drop_state is 'Sums'
      hint: use a list: ['Sums']
    """
    parser = shared_parser(cls for cls in all_classes() if cls.__module__.startswith("penstock."))
    ignored = parser.without_effect()
    fits = {action.dest: action for action in parser._actions if action not in ignored}
    return [
        three_parts(f"{name} is {value!r}", hint=hint)
        for name, value in options._all_options.items()
        if name in fits and value is not None and (hint := _hint_of_misfit(fits[name], value))
    ]


def _hint_of_misfit(action: argparse.Action, value: Any) -> str | None:
    """Returns what to write instead of a value, if it is of the wrong kind for its option."""
    if isinstance(value, ValueProvider):
        return None
    if action.nargs == 0 and isinstance(action.const, bool):
        return None if value in (True, False) else "use True or False"
    if isinstance(action, argparse._AppendAction):
        if isinstance(value, str):
            return f"use a list: [{value!r}]"
        return None if isinstance(value, list | tuple) else "use a list of texts"
    if action.choices is not None:
        return None if value in action.choices else f"use one of {', '.join(map(str, action.choices))}"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if action.type is int:
        return None if is_number and value == value // 1 else "use a whole number"
    if action.type is float:
        return None if is_number else "use a number"
    if isinstance(action, argparse._StoreAction) and action.type is None:
        return None if isinstance(value, str | os.PathLike) else f"use a text: {str(value)!r}"
    return None


def _names_of(rest: Sequence[str]) -> Iterator[str]:
    """Yields the flags among unknown arguments, without their values; an argument without a flag stands for itself."""
    follows_flag = False
    for argument in rest:
        is_flag = argument.startswith("-") and len(argument) > 1
        if is_flag or not follows_flag:
            yield argument.partition("=")[0]
        follows_flag = is_flag and "=" not in argument


def _plain(flag: str) -> str:
    return re.sub(r"[-.]", "_", flag.lstrip("-").lower())


def _refuse_ours(flag: str, parser: OptionsParser) -> None:
    spelled = {_plain(known): known for known in parser.known_flags()}
    plain = _plain(flag)
    if not flag.startswith("-") or not (_OURS.match(plain) or plain in spelled):
        return
    own = "if it is a flag of your own, pass on only what your parser leaves: parse_known_args()[1]"
    hint = f"run the program with --help to see all options; {own}"
    close = spelled.get(plain) or nearest_option(flag, parser.known_flags())
    if flag.startswith("--spark."):
        hint = f"write --spark_conf={flag[2:]}=value"
    elif close:
        hint = f"did you mean {close}? R{hint[1:]}"
    raise refusal(ValueError, f"{flag} is not an option", hint=hint)


def _meant(flag: str, parser: OptionsParser) -> str:
    close = nearest_option(flag, parser.known_flags()) if flag.startswith("-") else None
    return f" (did you mean {close}?)" if close else ""


def _without_effect(parser: OptionsParser, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the flags that are given without effect, each with the option to use instead."""
    defaults, _ = parser.values_of([])
    for action, instead in parser.without_effect().items():
        value = values[action.dest]
        if value != defaults[action.dest] and action.const in (None, value):
            yield action.option_strings[-1], instead


@functools.cache
def _warn_of_unknown(flags: tuple[str, ...]) -> None:
    if flags:
        _LOGGER.warning(
            "No class of options knows these arguments, which have no effect on the pipeline: %s",
            ", ".join(flags),
        )


@functools.cache
def _warn_of_no_effect(given: tuple[tuple[str, str], ...]) -> None:
    if given:
        by_hint: dict[str, list[str]] = {}
        for flag, instead in given:
            by_hint.setdefault(instead, []).append(flag)
        shown = "; ".join(f"{', '.join(flags)} ({instead})" for instead, flags in by_hint.items())
        _LOGGER.warning("These options are Beam's, and have no effect on Spark: %s", shown)


def _flags_of_ours(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields the flags of penstock options among arguments, each with the name of its option."""
    if not arguments:
        return
    parser = shared_parser(cls for cls in all_classes() if cls.__module__.startswith("penstock."))
    ignored = parser.without_effect()
    names = {
        flag: action.dest
        for action in parser._actions
        if action not in ignored
        for flag in action.option_strings
        if flag.startswith("--")
    }
    yield from ((flag, names[flag]) for flag in _names_of(arguments) if flag in names)


@functools.cache
def _warn_of_unread(flags: tuple[str, ...]) -> None:
    if flags:
        what = (
            f"the pipeline does not read the command line, so these flags have no effect: {', '.join(flags)}"
        )
        hint = "write Pipeline(options=PipelineOptions()), or argv=[] if the flags are the program's own"
        _LOGGER.warning("%s", three_parts(what, where=here(), hint=hint))


def own_options(options: Any, argv: Any, arguments: Mapping[str, Any]) -> PipelineOptions:
    """Returns a copy of options, or options made of command line arguments; ValueError if their type is wrong.

    Without either, the pipeline does not read the program's command line. A warning then names the flags of
    penstock's that stand there, except those whose options are among the pipeline's keyword arguments.
    """
    if options is not None and not isinstance(options, PipelineOptions):
        what = f"Parameter options, if specified, must be of type PipelineOptions. Received: {options!r}"
        hint = "PipelineOptions.from_dictionary makes options of a dictionary"
        raise refusal(ValueError, what, hint=hint)
    if argv is not None and not isinstance(argv, list):
        what = f"Parameter argv, if specified, must be a list. Received: {argv!r}"
        raise refusal(ValueError, what, hint="write argv=['--name=value']")
    if options is None:
        if argv is None:
            _warn_of_unread(
                tuple(flag for flag, name in _flags_of_ours(sys.argv[1:]) if name not in arguments)
            )
        return PipelineOptions(argv or [])
    own = copy.copy(options)
    own._all_options = dict(options._all_options)
    return own


def checked_arguments(arguments: dict[str, Any], taker: str = "Pipeline") -> dict[str, Any]:
    """Returns the keyword arguments of a pipeline or a runner; TypeError if one is neither ``spark`` nor an option.

    >>> checked_arguments({"shufle_partitions": 4})
    Traceback (most recent call last):
        ...
    TypeError: Pipeline has no argument or option 'shufle_partitions'
      at ...
      hint: did you mean shuffle_partitions?
    """
    if arguments:
        known = {*NOT_FLAGS, *shared_parser(all_classes()).values_of([])[0]}
        for name in arguments:
            if name not in known:
                close = nearest_option(name, known)
                hint = f"did you mean {close}?" if close else "a program run with --help shows all options"
                what = f"{taker} has no argument or option {name!r}"
                raise refusal(TypeError, what, hint=hint)
    return arguments
