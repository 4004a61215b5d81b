"""The files that a micro-batch of a stream reads, looked at without Java."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock_spark.files.splits import SHORTENED_FILE
from penstock_spark.files.whole_files import WholeFiles
from penstock_spark.reports.failure import StepFailure, find_failure


class Spark:
    """A query whose only source has read some files; it counts how often its plan is asked for."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files
        self.looks = 0
        stream = SimpleNamespace(lastExecution=self._execution)
        query = SimpleNamespace(streamingQuery=lambda: stream)
        streams = SimpleNamespace(get=lambda _: query)
        self._jsparkSession = SimpleNamespace(streams=lambda: streams)
        self.sparkContext = SimpleNamespace(getLocalProperty=lambda _: "a query")
        self.conf = SimpleNamespace(get=lambda name, default: default)

    def _execution(self) -> Any:
        self.looks += 1
        sizes = {f"file://{path}": path.stat().st_size for path in self.files if path.exists()}

        def listed(at: int) -> Any:
            path, size = list(sizes.items())[at]
            return SimpleNamespace(
                getPath=lambda: SimpleNamespace(toString=lambda: path), getLen=lambda: size
            )

        paths = SimpleNamespace(
            mkString=lambda between: between.join(f"file://{path}" for path in self.files)
        )
        location = SimpleNamespace(
            rootPaths=lambda: paths,
            allFiles=lambda: SimpleNamespace(size=lambda: len(sizes), apply=listed),
            sizeInBytes=lambda: sum(sizes.values()),
        )
        relation = SimpleNamespace(
            location=lambda: location,
            fileFormat=lambda: of_class("TextFileFormat"),
            options=lambda: SimpleNamespace(get=lambda _: SimpleNamespace(isDefined=lambda: False)),
        )
        leaf = SimpleNamespace(getClass=of_class("LogicalRelation").getClass, relation=lambda: relation)
        leaves = SimpleNamespace(apply=lambda at: [leaf][at])
        return SimpleNamespace(analyzed=lambda: SimpleNamespace(collectLeaves=lambda: leaves))

    def frame(self) -> Any:
        """The rows of the next micro-batch."""
        return SimpleNamespace(sparkSession=self)


def of_class(name: str) -> Any:
    return SimpleNamespace(getClass=lambda: SimpleNamespace(getSimpleName=lambda: name))


def failure_of(files: WholeFiles, frame: Any) -> str:
    """The error of a look at the files of a micro-batch that has found something wrong."""
    with pytest.raises(StepFailure) as failed:
        files.check(frame)
    failure = find_failure(str(failed.value))
    assert failure is not None
    return failure.message


def test_spark_is_asked_once_what_a_micro_batch_reads_and_the_disk_at_every_look(tmp_path: Path) -> None:
    path = tmp_path / "scores.txt"
    path.write_text("one\ntwo\n")
    spark = Spark([path])
    files = WholeFiles(spark, {0: "at step 'Read'"})  # type: ignore[arg-type]
    frame = spark.frame()
    files.begin(frame)
    files.check(frame)
    files.check(frame)
    assert spark.looks == 1
    path.write_text("one\n")
    assert SHORTENED_FILE in failure_of(files, frame)


def test_each_micro_batch_reads_files_of_its_own(tmp_path: Path) -> None:
    first, second = tmp_path / "1.txt", tmp_path / "2.txt"
    spark = Spark([first])
    files = WholeFiles(spark, {0: "at step 'Read'"})  # type: ignore[arg-type]
    first.write_text("one\n")
    frame = spark.frame()
    files.begin(frame)
    files.check(frame)
    spark.files = [second]
    frame = spark.frame()
    files.begin(frame)
    assert f"{second} cannot be read: it was deleted" in failure_of(files, frame)
