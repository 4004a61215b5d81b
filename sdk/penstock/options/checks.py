"""The checks of a pipeline's options: refuses wrong and misspelled options, and warns of those without effect."""

from __future__ import annotations

import functools
import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from penstock.checks.similar_names import find_slip
from penstock.error import refusal, three_parts
from penstock.options.base import (
    PipelineOptions,
    get_shared_parser,
    list_given_flags,
    list_given_values,
    list_option_classes,
    with_values,
)
from penstock.options.option import Ignored, Option
from penstock.options.parsing import OptionsParser, find_nearest_option
from penstock.where import here

_OptionsT = TypeVar("_OptionsT", bound=PipelineOptions)

_LOGGER = logging.getLogger(__name__)
_OURS = re.compile(r"penstock|checkpoint|(spark|shuffle|trigger|drain)(_|$)")
"""The beginnings of the names of penstock options, in the form of `_plain`."""

_FLAGS_OF_PROGRAMS = frozenset({"model"})
"""Flags that many programs have, and that a slip would make of an option."""

_READ_ANYWAY = frozenset({"full_trace"})
"""The options that have an effect on the command line of a program that does not read it."""

NOT_FLAGS = frozenset({"spark"})
"""The arguments of a pipeline that no command line can give."""


def check_given(options: PipelineOptions) -> None:
    """Refuses mistyped options, and warns of all others that have no effect.

    An option is mistyped if it begins like a penstock option, equals a known option except for dashes and capitals, or
    differs from an option of Beam or penstock by a slip of the hand. Programs may have flags that no class of options
    defines; one warning per process names them. Another one names Beam's options that have no effect.

    >>> check_given(PipelineOptions(["--checkpoint_locatoin=/tmp/here"]))
    Traceback (most recent call last):
        ...
    ValueError: --checkpoint_locatoin is not an option
      at ...
      hint: did you mean --checkpoint_location? Run the program with --help to see all options; if it is your own flag,
          pass on only what your parser leaves: parse_known_args()[1]
    """
    parser = get_shared_parser(list_option_classes())
    known, rest = parser.values_of(list_given_flags(options))
    values = {**known, **list_given_values(options)}
    unknown = list(dict.fromkeys(_names_of(rest)))
    unknown += [f"--{name}" for name in values if name not in known and name not in NOT_FLAGS]
    for flag in unknown:
        _refuse_ours(flag, parser)
    _warn_of_unknown(tuple(f"{flag}{_meant(flag, parser)}" for flag in unknown))
    _warn_of_no_effect(tuple(_without_effect(parser, values)))


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
    slip = None if plain in _FLAGS_OF_PROGRAMS else find_slip(plain, _plain_of_table(parser))
    if not flag.startswith("-") or not (_OURS.match(plain) or plain in spelled or slip):
        return
    own = "if it is your own flag, pass on only what your parser leaves: parse_known_args()[1]"
    hint = f"run the program with --help to see all options; {own}"
    close = spelled.get(plain) or spelled.get(slip or "") or find_nearest_option(flag, parser.known_flags())
    if flag.startswith("--spark."):
        hint = f"write --spark_conf={flag[2:]}=value"
    elif close:
        hint = f"did you mean {close}? R{hint[1:]}"
    raise refusal(ValueError, f"{flag} is not an option", hint=hint)


def _plain_of_table(parser: OptionsParser) -> list[str]:
    """The flags of options/table.py: a program's own flags may be alike."""
    return [_plain(flag) for option in parser.records() for flag in option.spellings()]


def _meant(flag: str, parser: OptionsParser) -> str:
    close = find_nearest_option(flag, parser.known_flags()) if flag.startswith("-") else None
    return f" (did you mean {close}?)" if close else ""


def _without_effect(parser: OptionsParser, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the flags that are given without effect, each with the option to use instead."""
    defaults, _ = parser.values_of([])
    for option in parser.records():
        value = values[option.name]
        is_set = value != defaults[option.name] and (option.type is not bool or value == option.sets)
        if is_set and isinstance(option.effect, Ignored) and not option.effect.is_in_batch_only:
            yield option.spellings()[-1], option.effect.instead


def warn_of_no_effect_in_batch(options: PipelineOptions) -> None:
    """Logs a warning for each option that is set but has no effect in a batch."""
    parser = get_shared_parser(list_option_classes())
    values = {**parser.values_of(list_given_flags(options))[0], **list_given_values(options)}
    for option, effect in _of_streams(parser):
        if values[option.name] != option.default:
            _LOGGER.warning("the option %s has no effect: %s", option.name, effect.instead)


def as_batch(options: _OptionsT) -> _OptionsT:
    """Returns a copy of the options for a batch, without those that have no effect in one."""
    parser = get_shared_parser(list_option_classes())
    unset = {option.name: option.default for option, _ in _of_streams(parser)}
    return with_values(options, {**unset, "mode": "batch"})


def _of_streams(parser: OptionsParser) -> Iterator[tuple[Option, Ignored]]:
    """Yields the options that have no effect in a batch."""
    for option in parser.records():
        if isinstance(option.effect, Ignored) and option.effect.is_in_batch_only:
            yield option, option.effect


@functools.cache
def _warn_of_unknown(flags: tuple[str, ...]) -> None:
    if flags:
        _LOGGER.warning(
            "No class of options defines these arguments, and they have no effect on the pipeline: %s",
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
    parser = get_shared_parser(cls for cls in list_option_classes() if cls.__module__.startswith("penstock."))
    names = {
        flag: option.name
        for option in parser.records()
        if option.effect is None and option.name not in _READ_ANYWAY
        for flag in option.spellings()
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


def copy_options(
    options: PipelineOptions | None, argv: object, arguments: Mapping[str, Any]
) -> PipelineOptions:
    """Returns a copy of options, or options made of command line arguments; ValueError if their type is wrong.

    Without either, the pipeline does not read the program's command line. A warning then names penstock's flags on it,
    except those whose options are among the pipeline's keyword arguments.
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
    return with_values(options, {})


def check_arguments(arguments: dict[str, Any], taker: str = "Pipeline") -> dict[str, Any]:
    """Returns the keyword arguments of a pipeline or a runner; TypeError if one is neither ``spark`` nor an option.

    >>> check_arguments({"shufle_partitions": 4})
    Traceback (most recent call last):
        ...
    TypeError: Pipeline has no argument or option 'shufle_partitions'
      at ...
      hint: did you mean shuffle_partitions?
    """
    if arguments:
        known = {*NOT_FLAGS, *get_shared_parser(list_option_classes()).values_of([])[0]}
        for name in arguments:
            if name not in known:
                close = find_nearest_option(name, known)
                hint = f"did you mean {close}?" if close else "a program run with --help shows all options"
                what = f"{taker} has no argument or option {name!r}"
                raise refusal(TypeError, what, hint=hint)
    return arguments
