"""A declared table: its settings are checked here, and become the arguments of its connector's transforms."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias

from penstock.checks.similar_names import hint_at_name
from penstock.error import split_hint
from penstock.io.streaming.watermark_policy import WatermarkPolicy
from penstock.io.watermarks import BoundedDisorder, IdleTimeout
from penstock.sql.language.dialect import micros_of
from penstock.sql.plan.relations import ColumnDef, Columns
from penstock.sql.statements.forms import CreateTable, TableOption
from penstock.sql.statements.words import Script
from penstock.sql.tables.columns import type_of_text
from penstock.sql.tables.connectors import (
    Setting,
    TableConnector,
    find_connector,
    settings_of,
    stream_settings,
)
from penstock.sql.tables.declared_records import make_records, refuse_metadata
from penstock.sql.tables.records import FORMATS, Records

_TRUTHS = {"true": True, "false": False}
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_WATERMARK = {
    "per_partition": Setting("per_partition", "truth"),
    "at_least": Setting("at_least", "whole"),
    "idle_timeout": Setting("idle_timeout", "seconds"),
}
_OF_SQL = ("connector", "format", "rejects")
_RECORDS = {
    "sep": Setting("sep", "text"),
    "avro_schema": Setting("avro_schema", "text"),
    "key_format": Setting("key_format", "text"),
}
"""The settings of tables in records."""

Arguments: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A table that a job may read and write.

    Attributes:
        declared: Its statement.
        script: The text with the statement.
        system: The name of its connector.
        connector: What reads and writes it.
        types: The declared columns; empty if the statement has none.
        reading: Arguments of what reads it.
        stream_arguments: Arguments of what makes a stream of that.
        writing: Arguments of what writes it.
        watermark: The policy of its watermark; None if the statement has none.
        rejects: Where malformed records go: the name of a table, or a folder; None if they are errors.
        records: How its rows are in records with a key and a value; None if they are not.
    """

    declared: CreateTable
    script: Script
    system: str
    connector: TableConnector
    types: Columns
    reading: Arguments
    stream_arguments: Arguments
    writing: Arguments
    watermark: WatermarkPolicy | None = None
    rejects: TableOption | None = None
    records: Records | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.declared.name

    @property
    def streams(self) -> bool:
        """True if it is read as a stream, unless the job is a batch."""
        return self.watermark is not None or self.connector.always_streams or bool(self.stream_arguments)

    @property
    def takes_changes(self) -> bool:
        """True if rows that it has may be replaced and deleted."""
        return bool(self.declared.key) and self.connector.merges_by_key


def make_table(declared: CreateTable, script: Script) -> Table:
    """Returns the table that a statement declares.

    Raises:
        SqlError: It names no connector, a type that is none, or a setting that the connector does not have.
    """
    given = {each.name.lower(): each for each in declared.options}
    system, connector = _connector(declared, script, given)
    reading = {} if connector.read is None else settings_of(connector.read, connector)
    writing = {} if connector.write is None else settings_of(connector.write, connector)
    streaming = {} if connector.read is None else stream_settings(connector)
    marking = _WATERMARK if declared.watermark is not None else {}
    known = [reading, streaming, writing, marking, _RECORDS if connector.records else {}]
    found: list[dict[str, object]] = [{} for _ in known]
    for option in declared.options:
        if option.name.lower() in _OF_SQL:
            continue
        homes = [(one, into) for one, into in zip(known, found, strict=True) if _home(option.name, one)]
        for names, into in homes:
            _put(option, names, into, script)
        if homes:
            continue
        free = connector.known
        spelled = (
            None
            if free is None
            else next((each for each in free if each.lower() == option.name.lower()), None)
        )
        if free is not None and spelled is None:
            _refuse_unknown(declared, option, script, system, known, free)
        value = expand_variables(option, script)
        found[0][spelled or option.name] = value
        if option.name.lower() != "mode":
            found[2][spelled or option.name] = value
    types = _types(declared, script)
    table = Table(
        declared,
        script,
        system,
        connector,
        types,
        found[0],
        found[1],
        found[2],
        _policy(declared, found[3]),
        given.get("rejects"),
        make_records(declared, script, types, found[4]) if connector.records else None,
    )
    if table.records is None:
        refuse_metadata(declared, script, system)
    if table.rejects is not None and not (connector.rejects or table.streams):
        what = f"the table {table.name!r} of {system} has no records to reject"
        script.refuse(
            what, table.rejects.at, "leave rejects out, or declare a WATERMARK, which makes it a stream"
        )
    if table.rejects is not None and connector.finds_in_engine and not table.types:
        what = f"the table {table.name!r} rejects what does not fit its columns, and declares none"
        script.refuse(what, table.rejects.at, "declare the columns after the name of the table")
    return table


def _connector(
    declared: CreateTable, script: Script, given: Mapping[str, TableOption]
) -> tuple[str, TableConnector]:
    named = given.get("connector") or given.get("format")
    if named is None:
        hint = "write WITH (format = 'csv', path = '/data/goals'), or connector = 'kafka', for example"
        script.refuse(f"the table {declared.name!r} has neither a connector nor a format", declared.at, hint)
    system = named.value.lower()
    form = given.get("format")
    if named is not form and form is not None and system in ("files", "filesystem"):
        named, system = form, form.value.lower()
    try:
        connector = find_connector(system)
    except ValueError as error:
        what, hint = split_hint(str(error))
        script.refuse(what.splitlines()[0], named.value_at, hint)
    if form is not None and form is not named:
        forms = (*FORMATS, "text") if connector.records else ()
        if form.value.lower() not in forms:
            hint = hint_at_name(form.value, forms, f"it has {', '.join(FORMATS)}")
            hint = hint if forms else "leave format out"
            script.refuse(f"a table of {system} has no format {form.value!r}", form.value_at, hint)
    if connector.needs_columns and not declared.columns and declared.query is None:
        script.refuse(
            f"the columns of the table {declared.name!r} are unknown: data of {system} does not contain them",
            declared.at,
            f"write CREATE TABLE {declared.name} (team STRING, points BIGINT) WITH (…)",
        )
    return system, connector


def _home(name: str, settings: Mapping[str, Setting]) -> str | None:
    """The setting that an option sets: it has its name, or is one of its pairs."""
    lowered = name.lower()
    for known, setting in settings.items():
        if lowered == known.lower() and setting.kind != "pairs":
            return known
        if setting.kind.startswith("pairs") and lowered.startswith(f"{known.lower()}."):
            return known
    return None


def _put(
    option: TableOption, settings: Mapping[str, Setting], into: dict[str, object], script: Script
) -> None:
    """Adds the argument that an option sets."""
    name = _home(option.name, settings)
    assert name is not None
    setting = settings[name]
    if setting.kind.startswith("pairs") and len(option.name) > len(name):
        pairs = into.setdefault(setting.argument, {})
        assert isinstance(pairs, dict)
        pairs[option.name[len(name) + 1 :]] = expand_variables(option, script)
        return
    into[setting.argument] = _value(option, setting, script)


def _refuse_unknown(
    declared: CreateTable,
    option: TableOption,
    script: Script,
    system: str,
    known: list[Mapping[str, Setting]] | list[dict[str, Setting]],
    free: frozenset[str],
) -> None:
    instead = {
        "event_time": "write WATERMARK FOR at AS at - INTERVAL '5' SECONDS among the columns",
        "watermark": "write WATERMARK FOR at AS at - INTERVAL '5' SECONDS among the columns",
        "partition_by": "write PARTITIONED BY (day) before WITH",
        "key": "write PRIMARY KEY (team) NOT ENFORCED among the columns",
        "columns": "write the columns after the name of the table",
        "schema": "write the columns after the name of the table",
        **dict.fromkeys(_WATERMARK, "it belongs to a WATERMARK among the columns"),
    }
    names = sorted({*(name for settings in known for name in settings), *free, *_OF_SQL})
    hint = instead.get(option.name.lower()) or hint_at_name(option.name, names, f"it has {', '.join(names)}")
    what = f"the table {declared.name!r} of {system} has no setting {option.name!r}"
    script.refuse(what, option.at, hint)


def expand_variables(option: TableOption, script: Script) -> str:
    """Returns the value of an option, in which ``${NAME}`` is replaced by the environment variable."""

    def variable(found: re.Match[str]) -> str:
        value = os.environ.get(found[1])
        if value is None:
            hint = f"set it: export {found[1]}=…"
            script.refuse(f"the environment has no variable {found[1]}", option.value_at, hint)
        return value

    return _VARIABLE.sub(variable, option.value)


def _value(option: TableOption, setting: Setting, script: Script) -> object:
    """The value of an option, as the kind of the setting says."""
    text = expand_variables(option, script)
    if option.name.lower() == "path":
        return make_absolute(text)
    try:
        return _READ[setting.kind](text)
    except ValueError:
        what = f"{option.name!r} is {option.value!r}, and not {_WANTED[setting.kind]}"
        return script.refuse(what, option.value_at, f"write {option.name} = {_EXAMPLES[setting.kind]}")


def make_absolute(path: str) -> str:
    """Returns a path from the root; Spark may run in a different folder than the program.

    >>> make_absolute("s3://lake/goals"), make_absolute("/data/goals/")
    ('s3://lake/goals', '/data/goals/')
    """
    is_local = "://" not in path and not path.startswith("file:")
    return os.path.join(os.getcwd(), path) if is_local else path


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTHS:
        raise ValueError(text)
    return _TRUTHS[text.lower()]


def _seconds(text: str) -> float:
    words = text.split()
    if len(words) == 1:
        return float(text)
    micros = micros_of(words)
    if micros is None:
        raise ValueError(text)
    return micros / 1_000_000


def _list(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")]


def _bound(text: str) -> int | date:
    return int(text) if re.fullmatch(r"-?[0-9]+", text) else date.fromisoformat(text)


def _whole_or_text(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?[0-9]+", text) else text


_READ: Mapping[str, Callable[[str], object]] = {
    "truth": _truth,
    "whole": int,
    "number": float,
    "seconds": _seconds,
    "list": _list,
    "bound": _bound,
    "whole or text": _whole_or_text,
    "text": str,
    "pairs or text": str,
}
_WANTED = {
    "truth": "true or false",
    "whole": "an integer",
    "number": "a number",
    "seconds": "an interval",
    "bound": "an integer or a date",
}
_EXAMPLES = {
    "truth": "true",
    "whole": "100",
    "number": "60",
    "seconds": "'5 minutes'",
    "bound": "1000",
}


def _types(declared: CreateTable, script: Script) -> Columns:
    found = []
    for column in declared.columns:
        kind = type_of_text(column.type)
        if kind is None:
            what = f"the column {column.name!r} has the type {column.type}, which is not a type"
            script.refuse(
                what, column.at, "write STRING, BIGINT, DOUBLE, DECIMAL(10, 2) or TIMESTAMP, for example"
            )
        found.append(ColumnDef(column.name, kind.or_null(column.nullable)))
    return tuple(found)


def _policy(declared: CreateTable, given: dict[str, object]) -> WatermarkPolicy | None:
    if declared.watermark is None:
        return None
    idle = given.pop("idle_timeout", None)
    policy: WatermarkPolicy = BoundedDisorder(declared.watermark.seconds, **given)  # type: ignore[arg-type]
    return policy if idle is None else IdleTimeout(policy, idle)  # type: ignore[arg-type]
