"""Bounded sources in a stream: read once by a batch job, kept as files of pages, and streamed from there."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from penstock.error import RunnerError
from penstock.utils import clock
from penstock.utils.identifiers import identifier
from penstock_spark.files.file_store import SparkFiles, escape_glob, files_of_spark
from penstock_spark.process.written_formats import STAGED
from penstock_spark.reports.failure import fail_step
from penstock_spark.reports.reporting import Reporting, current_reporting, report_with
from penstock_spark.session.backends import map_in_arrow
from penstock_spark.session.worker_socket import acknowledge_each
from penstock_spark.shipping.import_paths import import_like_driver
from penstock_spark.sources.reader_options import check_file_options, file_options
from penstock_spark.sources.scan import Reader, Scan, with_plain_names
from penstock_spark.worker.batch import Batch, dumps_with_code, encode_page, loads

PAGES = "value binary, last boolean"
"""The columns of the files: a page, or null in the last row of all, which is the mark of the end."""

_PAGE_BYTES = 1 << 20
_PAGE_ELEMENTS = 10_000
_FIRST_PAGE_ELEMENTS = 1_000
_WRITER = {
    # Files of about 32 MB, so that a limit for each micro-batch can bite.
    "maxRecordsPerFile": 32,
    # Spark's writer and its reader have a row group in memory.
    "parquet.block.row.count.limit": 8,
}
_SCHEMA = pa.schema([("value", pa.binary()), ("last", pa.bool_())])
_CLOCK_TRIES = 100
_CLOCK_PAUSE_SECONDS = 0.1


def stage_bounded(
    scan: Scan,
    folder: str,
    where: str,
    dumps: Callable[[Any], bytes] = dumps_with_code,
    sys_path: tuple[str, ...] = (),
) -> None:
    """Reads a bounded source into a folder, unless an earlier call has finished that.

    An interrupted call leaves no mark of completeness, and the next call starts again.
    """
    spark = scan.frame.sparkSession
    files, complete = files_of_spark(spark, folder), f"{folder}/_complete"
    mark = files.read(complete)
    if mark is not None:
        STAGED.check(_format_in(mark), where)
        return
    files.delete(folder)
    files.make(folder)
    # A task of a run that was cut off may still write, but to a different folder than this run.
    staged, pages = f"{folder}/_staged-{identifier()}", f"{folder}/pages"
    plain, make_reader = with_plain_names(scan.decoded_frame, scan.make_reader)
    program = dumps(_Paging(make_reader, where))
    frame = map_in_arrow(plain, _paging_function(program, sys_path), PAGES)
    frame.write.options(**_WRITER).parquet(staged)
    scan.check()
    files.rename(staged, pages)
    _write_end(files, pages, where)
    files.write(complete, json.dumps({"format": STAGED.number}).encode())


def _format_in(mark: bytes) -> object:
    try:
        return json.loads(mark)["format"]
    except (ValueError, TypeError, KeyError):
        return None


def open_staged(spark: SparkSession, folder: str, options: Iterable[tuple[str, Any]] = ()) -> DataFrame:
    """The pages of a folder that `stage_bounded` has filled, as a stream; its last file has the end mark."""
    check_file_options(options, f"at the folder {folder}")
    reader = spark.readStream.format("parquet").schema(PAGES).options(**file_options(options))
    pages = reader.load(f"{escape_glob(folder)}/pages")
    return pages.select("value", "last", "_metadata.file_name", "_metadata.file_block_start")


def _write_end(files: SparkFiles, pages: str, where: str) -> None:
    """Adds the file with the end mark, which must be the latest: streams read files in the order of their
    changes.
    """
    content = io.BytesIO()
    pq.write_table(pa.table({"value": [None], "last": [True]}, _SCHEMA), content)
    latest_millis = max(files.changed_millis(pages).values(), default=0)
    name = "end.parquet"
    for _ in range(_CLOCK_TRIES):
        files.write(f"{pages}/{name}", content.getvalue())
        if files.changed_millis(pages)[name] > latest_millis:
            return
        clock.sleep(_CLOCK_PAUSE_SECONDS)
    raise RunnerError(
        f"a file that is written to {pages} has an older time than the files that are there",
        where=where,
        hint="correct the clock of that file system, or name another checkpoint_location",
    )


@dataclass(frozen=True)
class _Paging:
    make_reader: Callable[[], Reader]
    where: str
    reporting: Reporting = field(default_factory=current_reporting)


def _paging_function(program: bytes, sys_path: tuple[str, ...]) -> Callable[[Any], Any]:
    def run(records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import_like_driver(sys_path)
        paging: _Paging = loads(program)
        report_with(paging.reporting)
        try:
            read, pages = paging.make_reader(), Pages()
            for record in acknowledge_each(records):
                for values in read(record):
                    yield from map(_record, pages.add(values))
            for page in pages.rest():
                yield _record(page)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            fail_step(error, paging.where)

    return run


def _record(page: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([page], pa.binary()), pa.array([False])], schema=_SCHEMA)


class Pages:
    """Cuts elements into pages of about a megabyte, with at most 10,000 elements each.

    >>> pages = Pages()
    >>> len(list(pages.add(list(range(25_000))))), len(list(pages.rest()))
    (3, 1)
    """

    def __init__(self) -> None:
        self._waiting: list[Any] = []
        self._count = _FIRST_PAGE_ELEMENTS

    def add(self, values: list[Any] | Batch) -> Iterator[bytes]:
        """Returns the pages that more elements complete; a batch with times completes its pages at once."""
        if isinstance(values, Batch):
            yield from self.rest()
            for start in range(0, len(values.values), _PAGE_ELEMENTS):
                end = min(start + _PAGE_ELEMENTS, len(values.values))
                yield encode_page(values.taken(list(range(start, end))))
            return
        self._waiting += values
        start = 0
        while len(self._waiting) - start >= self._count:
            some = self._waiting[start : start + self._count]
            start += len(some)
            yield from self._encoded(some)
        del self._waiting[:start]

    def rest(self) -> Iterator[bytes]:
        if self._waiting:
            yield from self._encoded(self._waiting)
        self._waiting = []

    def _encoded(self, values: list[Any]) -> Iterator[bytes]:
        page = encode_page(Batch(values))
        fitting = len(values) * _PAGE_BYTES // len(page)
        self._count = max(1, min(fitting, _PAGE_ELEMENTS))
        if len(page) <= 2 * _PAGE_BYTES or len(values) == 1:
            yield page
            return
        middle = len(values) // 2
        yield from self._encoded(values[:middle])
        yield from self._encoded(values[middle:])
