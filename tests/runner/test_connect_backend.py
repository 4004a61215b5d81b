"""What the runner does with a session of Spark Connect, without a server: reports, side inputs, clones and settings."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import zipfile
from base64 import b64encode
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from penstock.error import UnsupportedByRunner
from penstock.options.base import PipelineOptions
from penstock.options.spark import SparkOptions
from penstock_spark.plan.spark_watermark import AHEAD_METRIC
from penstock_spark.runs import open_session
from penstock_spark.runs.native_grouping import native_counts
from penstock_spark.session.backend import Told
from penstock_spark.session.connect import server_life, travelling
from penstock_spark.session.connect.backend import ConnectBackend
from penstock_spark.session.connect.reports import (
    COLUMN,
    REPORTS,
    LastRow,
    ObservedReports,
    _ReportingProcessor,
    _WithReport,
)
from penstock_spark.session.connect.shipped_pages import InFile, InProgram
from penstock_spark.session.connect.travelling import travelling_operator
from penstock_spark.session.meaning import SQL_MEANING
from penstock_spark.session.sizes import bytes_of

ROWS = pa.schema([pa.field("value", pa.int64(), nullable=False)])


def task(batches: list[list[int]], told: Told) -> list[pa.RecordBatch]:
    """The output of a task that emits some batches, and then tells something."""
    sink = LastRow()

    def function(records: Any) -> Any:
        for values in batches:
            yield pa.RecordBatch.from_pydict({"value": values}, schema=ROWS)
        sink.add(told)

    return list(_WithReport(function, sink, ROWS)(iter(())))


@pytest.mark.parametrize("batches", [[], [[1, 2], [3]]], ids=["no rows", "rows"])
def test_a_task_tells_in_one_row_after_all_others(batches: list[list[int]]) -> None:
    *rows, last = task(batches, {("run", 1, 0): {"a": 5}})
    assert [row.column("value").to_pylist() for row in rows] == batches
    assert all(row.column(COLUMN).null_count == row.num_rows for row in rows)
    assert last.column("value").to_pylist() == [None]
    [report] = last.column(COLUMN).to_pylist()
    assert pickle.loads(report) == {("run", 1, 0): {"a": 5}}
    assert len({batch.schema for batch in (*rows, last)}) == 1


def test_a_task_without_a_report_adds_no_row() -> None:
    assert [batch.num_rows for batch in task([[1]], {})] == [1]


def observed(*told: Told) -> Any:
    return SimpleNamespace(get={"reports": [pickle.dumps(each) for each in told]})


def test_what_comes_again_counts_once_and_what_was_taken_out_stays_away() -> None:
    waiting = SimpleNamespace(get={})
    reports = ObservedReports(
        _open=[observed({("r", 0, 0): 1}, {("r", 0, 1): 2}), observed({("r", 0, 1): 2}), waiting]
    )
    assert reports.value == {("r", 0, 0): 1, ("r", 0, 1): 2}
    del reports.value["r", 0, 0]
    assert reports.value == {("r", 0, 1): 2}
    # The job of the third observation has ended.
    waiting.get = observed({("r", 1, 0): 3}).get
    assert reports.value == {("r", 0, 1): 2, ("r", 1, 0): 3}


@pytest.mark.parametrize("pages", [InProgram("a side input", (b"1", b"2")), InFile("a file")], ids=repr)
def test_the_tasks_of_a_process_share_what_they_decode(pages: Any) -> None:
    first, second = (pickle.loads(pickle.dumps(pages)) for _ in range(2))
    assert first is second


def test_a_task_that_empties_its_list_of_pages_takes_none_from_the_next() -> None:
    pages = InProgram("another side input", (b"1",))
    pages.value.clear()
    assert pages.value == [b"1"]


class Client:
    """PySpark's client of a session, without a server."""

    policies: list[object] = []

    def get_retry_policies(self) -> list[object]:
        return self.policies

    def set_retry_policies(self, policies: list[object]) -> None:
        self.policies = policies


class Session:
    """A session of a server, which refuses to set some properties."""

    version = "4.3.0"
    is_stopped = False

    def __init__(
        self, settings: dict[str, str], refused: frozenset[str] = frozenset(), number: int = 0
    ) -> None:
        self.session_id = f"{id(self)}"
        self.settings, self.refused, self.number = settings, refused, number
        self.clones = 0
        self.client = Client()
        self.conf = SimpleNamespace(get=self._get, set=self._set)

    def _get(self, name: str, default: Any = None) -> Any:
        return self.settings.get(name, default)

    def _set(self, name: str, value: str) -> None:
        if name in self.refused:
            raise ValueError(f"CANNOT_MODIFY_CONFIG {name}")
        self.settings[name] = value

    def cloneSession(self) -> Session:
        self.clones += 1
        return Session(dict(self.settings), self.refused, self.clones)


def session(refused: str = "") -> tuple[Session, ConnectBackend]:
    made = Session({"spark.sql.shuffle.partitions": "8"}, frozenset(filter(None, [refused])))
    vars(made.conf)["getAll"] = made.settings
    backend: Any = ConnectBackend(made)  # type: ignore[arg-type]
    return made, backend


def test_pipelines_share_a_clone_while_the_settings_stay_and_none_needs_a_fresh_one() -> None:
    made, backend = session()
    first = backend.clone({"a": "1"}, is_fresh=False)
    assert backend.clone({"a": "1"}, is_fresh=False) is first
    assert backend.clone({"a": "2"}, is_fresh=False) is not first
    made.settings["spark.sql.shuffle.partitions"] = "9"
    second = backend.clone({"a": "2"}, is_fresh=False)
    assert second.conf.get("spark.sql.shuffle.partitions") == "9"
    assert backend.clone({"a": "2"}) is not second
    assert made.clones == 4
    assert "a" not in made.settings


@pytest.mark.parametrize("shares", ["false", "true"])
def test_a_clone_has_files_of_its_own_although_the_session_of_the_program_shares_them(shares: str) -> None:
    made, backend = session()
    name = "spark.sql.artifact.isolation.enabled"
    made.settings[name] = shares
    assert backend.clone({}).conf.get(name) == "true"
    assert made.settings[name] == shares


def test_a_query_runs_by_the_settings_of_its_session_and_others_are_refused() -> None:
    made, backend = session()
    zone = {"spark.sql.session.timeZone": "UTC"}
    made.settings["spark.sql.session.timeZone"] = "Etc/UTC"
    assert backend.session_of_queries(zone, "") is made
    made.settings["spark.sql.session.timeZone"] = "Asia/Tokyo"
    with pytest.raises(UnsupportedByRunner) as raised:
        backend.session_of_queries(zone, "at step 'Query'")
    what, where, hint = str(raised.value).splitlines()
    assert what.endswith("spark.sql.session.timeZone is Asia/Tokyo")
    assert where == "  at step 'Query'"
    assert "spark.conf.set('spark.sql.session.timeZone', 'UTC')" in hint


@pytest.mark.parametrize(
    ("path", "reads"),
    [
        ("file:///data/scores-1_2.x/a+b=c,d(e)", True),
        ("file:///data/größe", True),
        ("/50% done", False),
        ("/data/50%", False),
        ("/data/[1]", False),
        ("/data/a\u00a0b", False),
    ],
)
def test_state_is_read_in_folders_whose_names_java_does_not_escape(path: str, reads: bool) -> None:
    assert session()[1].reads_state_at(path) is reads


@pytest.mark.parametrize(("server", "written"), [("4.1.4", "3221225472"), ("4.3.0", "3221225472b")])
def test_a_size_that_an_older_server_writes_with_its_unit_is_a_number_for_the_client(
    monkeypatch: pytest.MonkeyPatch, server: str, written: str
) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.3.0")
    monkeypatch.setattr(Session, "version", server)
    made, backend = session()
    made.settings["spark.sql.session.localRelationSizeLimit"] = "3221225472b"
    assert backend.clone({}).conf.get("spark.sql.session.localRelationSizeLimit") == written


@pytest.mark.parametrize(("has_own_files", "sent"), [("true", ["own"]), ("false", [])])
def test_a_session_that_shares_its_files_gets_no_archive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_own_files: str, sent: list[str]
) -> None:
    monkeypatch.setattr(travelling, "_sent", {})
    monkeypatch.setattr(travelling, "_carried", {})
    archive = tmp_path / "penstock-1.zip"
    archive.write_bytes(b"packages")
    made, backend = session()
    made.settings["spark.sql.artifact.isolation.enabled"] = has_own_files
    got: list[str] = []
    vars(made)["addArtifacts"] = lambda path, pyfile: got.append("own")
    backend.ship_archive(str(archive))
    assert backend.has_shipped(archive.name)
    assert got == sent
    assert travelling._carried == ({} if sent else {archive.name: b"packages"})


def test_the_end_of_a_program_whose_server_has_gone_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    at_exit: list[Any] = []
    registry = SimpleNamespace(register=at_exit.append, unregister=lambda _: None)
    monkeypatch.setattr(server_life, "atexit", registry)
    made, backend = session()
    clone_session = made.cloneSession
    # PySpark's client asks the server at the end of the program, with the client's way to try again.
    monkeypatch.setattr(made, "cloneSession", lambda: at_exit.append("the client's own") or clone_session())
    clone: Any = backend.clone({})
    assert clone.client.policies
    own, last = at_exit
    assert own == "the client's own"
    last()
    assert clone.client.policies == []


def test_a_session_has_the_packages_before_a_source_is_opened_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []
    monkeypatch.setattr(open_session, "ship_packages", sent.append)
    monkeypatch.setattr(open_session, "is_local_session", lambda spark: False)
    monkeypatch.setattr(open_session, "backend_of", lambda spark: ConnectBackend(spark))
    monkeypatch.setattr(open_session, "settings_of_tasks", lambda spark: {})
    made, _ = session()
    opened = open_session.OpenSession(PipelineOptions([]).view_as(SparkOptions), False)
    vars(opened).update(spark=made, partitions=2)
    clone: object = opened.session
    assert sent == [clone]
    assert clone is not made


def test_a_setting_that_the_server_refuses_is_skipped_unless_results_depend_on_it() -> None:
    _, backend = session(refused="spark.sql.adaptive.enabled")
    assert (
        backend.clone({"spark.sql.adaptive.enabled": "false"}).conf.get("spark.sql.adaptive.enabled") is None
    )
    name = next(iter(SQL_MEANING))
    _, backend = session(refused=name)
    with pytest.raises(
        UnsupportedByRunner, match=f"does not let a session set {name} .*\n  in the .*\n  hint: "
    ):
        backend.clone(SQL_MEANING)


class Operator(StatefulProcessor):
    """A stateful operator that emits one row for each key, and tells the keys that are odd."""

    def __init__(self, sink: LastRow) -> None:
        self.sink = sink

    def init(self, handle: Any) -> None:
        self.handle = handle

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
        yield Row(level=2, shard=key[0], payload=b"")
        if key[0] % 2:
            self.sink.add({("run", 1, key[0]): "odd"})

    def close(self) -> None:
        pass


def test_a_stateful_operator_tells_in_a_last_row_of_each_key_in_a_task_too() -> None:
    sink = LastRow()
    processor = pickle.loads(CloudPickleSerializer().dumps(_ReportingProcessor(Operator(sink), sink)))
    processor.init("handle")
    rows = [row for key in (1, 2, 3) for row in processor.handleInputRows((key,), iter(()), None)]
    assert [(row.level, row.shard) for row in rows] == [(2, 1), (REPORTS, 1), (2, 2), (2, 3), (REPORTS, 3)]
    assert [pickle.loads(row.payload) for row in rows if row.level == REPORTS] == [
        {("run", 1, 1): "odd"},
        {("run", 1, 3): "odd"},
    ]


STATE = (
    "pages",
    StructType([StructField("page", LongType())]),
    StructType([StructField("page", BinaryType())]),
)


def test_a_python_without_this_package_can_ask_an_operator_for_its_state_and_no_more(tmp_path: Path) -> None:
    sink = LastRow()
    made = travelling_operator(_ReportingProcessor(Operator(sink), sink), STATE)
    (tmp_path / "operator").write_bytes(CloudPickleSerializer().dumps(made))
    program = (
        "import pickle, sys\n"
        "for name in ('penstock', 'penstock_spark'): sys.modules[name] = None\n"
        "operator = pickle.load(open(sys.argv[1], 'rb'))\n"
        "class Handle:\n"
        "    def getMapState(self, *state): print(*state)\n"
        "operator.init(Handle())\n"
        "operator.close()\n"
        "try: operator.handleInputRows((1,), iter(()), None)\n"
        "except ModuleNotFoundError as error: print('missing', error.name)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "operator")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    asked, missing = done.stdout.splitlines()
    assert asked == f"pages {STATE[1]} {STATE[2]}"
    assert missing.startswith("missing penstock")


@pytest.mark.parametrize("is_carried", [False, True])
def test_a_function_finds_the_archive_of_its_session_in_a_worker_that_looks_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_carried: bool
) -> None:
    name = "carried-1.zip"
    for folder in (tmp_path, tmp_path / "session"):
        folder.mkdir(exist_ok=True)
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr(
                "carried_in_archive.py", "def doubled(batches):\n    return [2 * n for n in batches]\n"
            )
    monkeypatch.syspath_prepend(str(tmp_path / name))
    monkeypatch.setattr(travelling, "_sent", {})
    monkeypatch.setattr(travelling, "_carried", {})
    (travelling.carry_archive if is_carried else travelling.note_archive)(str(tmp_path / name))
    if is_carried:
        (tmp_path / "session" / name).unlink()
    carried: Any = importlib.import_module("carried_in_archive")
    (tmp_path / "function").write_bytes(
        CloudPickleSerializer().dumps(travelling.travelling_function(carried.doubled))
    )
    (tmp_path / name).unlink()
    program = (
        "import pickle, sys\n"
        "from pyspark import SparkFiles\n"
        "SparkFiles._root_directory, SparkFiles._is_running_on_worker = sys.argv[1], True\n"
        "sys.path.insert(1, sys.argv[2])\n"
        "try: import carried_in_archive\n"
        "except ModuleNotFoundError: print('missing')\n"
        "for name in ('penstock', 'penstock_spark'): sys.modules[name] = None\n"
        "print(pickle.load(open(sys.argv[1] + '/function', 'rb'))([3]), sys.modules['carried_in_archive'].__file__)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path), str(tmp_path / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    # The folder of the session may go before the process does.
    assert done.stdout.splitlines() == ["missing", f"[6] {tmp_path / name / 'carried_in_archive.py'}"]


def test_a_travelling_operator_does_what_the_operator_does() -> None:
    sink = LastRow()
    made = travelling_operator(_ReportingProcessor(Operator(sink), sink), STATE)
    processor = pickle.loads(CloudPickleSerializer().dumps(made))
    processor.init("handle")
    rows = list(processor.handleInputRows((3,), iter(()), None))
    assert [(row.level, row.shard) for row in rows] == [(2, 3), (REPORTS, 3)]
    processor.close()


def as_text(told: Told) -> str:
    return b64encode(pickle.dumps(told)).decode()


@pytest.mark.parametrize(
    "row",
    [
        lambda texts: Row(reports=texts),
        lambda texts: Row(values=[texts], schema={"type": "struct"}),
        lambda texts: {"values": [texts], "schema": {"type": "struct"}},
    ],
    ids=["a row", "a row as Spark's JSON", "Spark's JSON"],
)
def test_the_reports_of_a_micro_batch_come_with_that_of_spark(row: Any) -> None:
    reports = ObservedReports()
    metrics = {
        "penstock reports 1": row([as_text({("r", 0, (1, 0)): 1}), as_text({("r", 0, (1, 1)): 2})]),
        "penstock reports 2": row([]),
        "the user's own": row(["not a report"]),
    }
    reports.see({"batchId": 1, "observedMetrics": metrics})
    reports.see({"batchId": 2, "observedMetrics": {}})
    reports.see({"batchId": 3})
    assert reports.value == {("r", 0, (1, 0)): 1, ("r", 0, (1, 1)): 2}


def test_what_is_no_size_is_refused() -> None:
    with pytest.raises(ValueError, match="'128 miles' is not a size"):
        bytes_of("128 miles")


@pytest.mark.parametrize(
    "row",
    [
        Row(**{AHEAD_METRIC: 3}),
        Row(values=[3], schema={"type": "struct"}),
        {"values": [3], "schema": {"type": "struct"}},
        None,
    ],
    ids=["a row", "a row as Spark's JSON", "Spark's JSON", "nothing"],
)
def test_what_a_stream_of_sparks_own_counts_comes_from_both_kinds_of_session(row: Any) -> None:
    about: Any = SimpleNamespace(native_grouping="Sum", sources=("Read",))
    progress = {
        "durationMs": {"addBatch": 1},
        "stateOperators": [{"numRowsDroppedByWatermark": 2}],
        "observedMetrics": {} if row is None else {AHEAD_METRIC: row},
    }
    assert sorted(native_counts(about, progress).values()) == ([2] if row is None else [2, 3])
