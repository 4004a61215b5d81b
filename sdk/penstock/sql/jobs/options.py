"""The options of a job: what SET and the command line say of its pipelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.error import refusal, split_hint
from penstock.options.base import get_shared_parser, list_option_classes
from penstock.options.option import Option
from penstock.options.parsing import find_nearest_option
from penstock.sql.statements.forms import SetOption
from penstock.sql.statements.words import Script

ALIASES = {"checkpoint": "checkpoint_location", "parallelism": "shuffle_partitions"}
"""Short names of options."""

_TRUTHS = {"true": True, "false": False}
_PROPERTIES = "spark_conf"


def set_option(statement: SetOption, script: Script, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options with the one that a statement sets.

    Raises:
        SqlError: There is no such option, or it cannot have the value.

    >>> set_option(SetOption("parallelism", "4", 0, 0), Script("SET parallelism = 4"), {})
    {'shuffle_partitions': 4}
    """
    name = statement.name.lower()
    if name.startswith("spark."):
        given = options.get(_PROPERTIES, [])
        assert isinstance(given, list)
        return {**options, _PROPERTIES: [*given, f"{statement.name}={statement.value}"]}
    records = {option.name: option for option in get_shared_parser(list_option_classes()).records()}
    option = records.get(ALIASES.get(name, name))
    if option is None or name == _PROPERTIES:
        meant = find_nearest_option(name, [*records, *ALIASES])
        hint = f"did you mean {meant}?" if meant else "penstock options shows all"
        if name == _PROPERTIES:
            hint = "write SET spark.sql.shuffle.partitions = 8, for example"
        script.refuse(f"there is no option {statement.name!r}", statement.at, hint)
    value = _value(statement, option, script)
    for error in option.errors(value, {"checkpoint_location": "", **options}):
        what, hint = split_hint(error)
        script.refuse(what, statement.value_at, hint)
    return {**options, option.name: value}


def _value(statement: SetOption, option: Option, script: Script) -> object:
    text = statement.value
    try:
        if option.type is bool:
            return _TRUTHS[text.lower()]
        if option.type in (int, float):
            return option.type(text)
    except (KeyError, ValueError):
        wanted = {bool: "true or false", int: "an integer", float: "a number"}[option.type]
        example = {bool: "true", int: "8", float: "0.5"}[option.type]
        what = f"{statement.name} is {text!r}, and not {wanted}"
        script.refuse(what, statement.value_at, f"write SET {statement.name} = {example}")
    return [each.strip() for each in text.split(",")] if option.type is list else text


def read_flags(flags: Sequence[str]) -> dict[str, Any]:
    """Returns the options that flags of a command line give, by their names.

    Raises:
        ValueError: There is no such option.

    >>> read_flags(["--checkpoint=/data/checkpoint", "--mode", "batch"])
    {'mode': 'batch', 'checkpoint_location': '/data/checkpoint'}
    """
    parser = get_shared_parser(list_option_classes())
    spelled = {f"--{short}": f"--{name}" for short, name in ALIASES.items()}
    given = []
    for flag in flags:
        name, equals, value = flag.partition("=")
        given.append(f"{spelled.get(name, name)}{equals}{value}")
    values, unknown = parser.values_of(given)
    if unknown:
        meant = find_nearest_option(unknown[0].partition("=")[0], [*parser.known_flags(), *spelled])
        hint = f"did you mean {meant}?" if meant else "penstock options shows all"
        raise refusal(ValueError, f"there is no option {unknown[0].partition('=')[0]}", where="", hint=hint)
    defaults, _ = parser.values_of([])
    return {name: value for name, value in values.items() if value != defaults[name]}
