"""Rows in CSV and JSON files, in the text that pandas makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.base.bounded_window import GlobalWindow
from penstock.error import UnsupportedByRunner, three_parts
from penstock.io.columnar import ColumnSink
from penstock.io.compression import CompressionTypes
from penstock.io.file_naming import default_file_naming
from penstock.io.filesystems import FileSystems
from penstock.io.paths import known_path
from penstock.io.write_files import FileResult
from penstock_spark.arrow.records import plain
from penstock_spark.files.naming import Naming
from penstock_spark.sinks.plan import Encoder, SinkPlan, plan_sink
from penstock_spark.sinks.shard_files import ShardWriter, local_plan
from penstock_spark.sinks.text import open_for_writing, text_plan_on_hadoop, text_rows


@plan_sink.register
def plan_columns(sink: ColumnSink, where: str) -> SinkPlan:
    """CSV or JSON files; the step's output are ``FileResult`` records, whose names are relative to the
    folder.
    """
    folder, prefix = folder_and_prefix(sink, where)
    naming = _naming(folder, sink.file_naming or default_file_naming(prefix))
    # A collection of nothing still makes a file if it is known what the header says.
    empty = 1 if sink.format == "csv" and sink.columns else 0
    return column_plan(sink, folder, naming, empty, where)


def folder_and_prefix(sink: ColumnSink, where: str) -> tuple[str, str]:
    """Where the files go, and how their names begin unless the sink has a naming of its own."""
    path = known_path(sink.path)
    if path is None:
        raise ValueError(
            three_parts(f"the path {sink.path} has no value", where=where, hint="give its option")
        )
    return (path, "") if sink.file_naming else (path.rpartition("/")[0], path.rpartition("/")[2])


def column_plan(sink: ColumnSink, folder: str, naming: Naming, empty: int, where: str) -> SinkPlan:
    """A plan for files with the names of a `Naming`; `empty` is how many files an empty collection gives."""
    text = _Text(sink.format, dict(sink.options), sink.columns, where)
    shards = sink.num_shards or 0
    if FileSystems.get_scheme(folder + "/") is None:
        return local_plan(
            folder or ".", column_shards(sink, where), naming, shards=shards, empty_shards=empty
        )
    if text.is_list:
        raise UnsupportedByRunner(
            f"lines=False is not supported for {known_path(sink.path)}",
            where=where,
            hint="write to a path without a scheme",
        )
    return text_plan_on_hadoop(
        folder,
        lambda: _ColumnBlocks(text),
        naming,
        codec=CompressionTypes.UNCOMPRESSED,
        shards=shards,
        empty_shards=empty,
        frame=text.head(),
    )


def column_shards(sink: ColumnSink, where: str) -> Callable[[str], ShardWriter]:
    """What opens a local file of a sink."""
    text = _Text(sink.format, dict(sink.options), sink.columns, where)
    return lambda path: _ColumnShard(path, text)


def _naming(folder: str, name: Any) -> Naming:
    window = GlobalWindow()

    def file_name(shard: int, count: int) -> str:
        return str(name(window, None, shard, count, "", None))

    def path_of(shard: int, count: int) -> str:
        return f"{folder}/{file_name(shard, count)}" if folder else file_name(shard, count)

    def results(written: list[str]) -> list[Any]:
        count = len(written)
        return [FileResult(file_name(at, count), at, count, window, None, None) for at in range(count)]

    return Naming(path_of, results)


@dataclass(frozen=True)
class _Text:
    """Makes text of rows.

    Attributes:
        format: ``"csv"`` or ``"json"``.
        options: Arguments of the pandas writer.
        columns: The columns, if they are known before the first row.
        where: The step, for errors.
    """

    format: str
    options: dict[str, Any] = field(hash=False)
    columns: tuple[str, ...] | None
    where: str

    @property
    def is_list(self) -> bool:
        """Whether a file is one JSON list."""
        return self.format == "json" and not self.options.get("lines", True)

    def head(self) -> bytes:
        """The content of a file without rows."""
        return self.of([], first=True) if self.format == "csv" else b""

    def of(self, values: Sequence[Any], first: bool) -> bytes:
        """The text of some rows, and of the header if they are the first of a file; it ends with a line
        end.
        """
        records = [plain(value) for value in values]
        if not all(isinstance(record, dict) for record in records):
            raise TypeError(
                three_parts(
                    "an element is no record with named fields",
                    where=self.where,
                    hint="make it a Row, e.g. with beam.Select, or a NamedTuple",
                )
            )
        # Every program imports this module, and few write such files: pandas takes a fifth of a second.
        import pandas as pd

        columns = list(self.columns or (records[0] if records else ()))
        # Columns of Python objects keep whole numbers whole where some are missing.
        table = pd.DataFrame(
            [[record.get(name) for name in columns] for record in records], columns=columns, dtype=object
        )
        if self.format == "json":
            text: str = table.to_json(orient="records", **self.options)
            return (text if text.endswith("\n") or self.is_list else text + "\n").encode("utf-8")
        options = {**self.options, "index": False}
        if not first:
            options["header"] = False
        text = table.to_csv(**{name: value for name, value in options.items() if name != "encoding"})
        return str(text).encode(self.options.get("encoding") or "utf-8")


class _ColumnShard:
    """One file on a local disk."""

    def __init__(self, path: str, text: _Text) -> None:
        self._file = open_for_writing(path, CompressionTypes.UNCOMPRESSED)
        self._text = text
        self._is_first = True
        self._held: list[Any] = []

    def write(self, values: Sequence[Any]) -> int:
        """Takes all of the rows; a JSON list is made at the end."""
        if self._text.is_list:
            self._held += values
        else:
            self._file.write(self._text.of(values, self._is_first))
            self._is_first = False
        return len(values)

    def close(self) -> None:
        """Writes what is not written yet."""
        if self._text.is_list:
            self._file.write(self._text.of(self._held, first=True))
        elif self._is_first:
            self._file.write(self._text.head())
        self._file.close()


@dataclass
class _ColumnBlocks(Encoder):
    """Rows of text for Spark's text writer."""

    text: _Text
    is_first: bool = True

    def start(self) -> pa.RecordBatch | None:
        """Nothing: a task without elements writes no file."""
        return None

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        """One row, without its last line end, which Spark adds."""
        if not values:
            return text_rows()
        first, self.is_first = self.is_first, False
        return text_rows(self.text.of(values, first).removesuffix(b"\n"))

    def finish(self) -> pa.RecordBatch | None:
        """Nothing."""
        return None
