"""The commands for streams that run elsewhere: what they print, and what they refuse, without Spark."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.utils import clock
from penstock_conformance import controlling
from penstock_conformance.command import BAD_INPUT, main
from penstock_spark.checkpoints.custody.folder import open_at
from penstock_spark.checkpoints.custody.holder import this_holder
from penstock_spark.checkpoints.custody.lease import Lease, Timing, take_lease
from penstock_spark.checkpoints.custody.requests import Answer, answer_request, take_requests
from penstock_spark.checkpoints.custody.run_records import RunRecord, begin_record
from penstock_spark.files.disk_place import DiskPlace
from penstock_spark.process.written_formats import END
from tests.runner.checkpoint_plans import Pipeline

PROGRAM = """
import penstock as beam
from penstock.options.pipeline_options import PipelineOptions

with beam.Pipeline({options}) as pipeline:
    lines = pipeline | "Lines" >> beam.io.ReadFromText("/logs/*.txt", validate=False).as_stream()
    pairs = lines | beam.Map(lambda line: (line, 1)) | beam.WindowInto(beam.window.FixedWindows(60))
    _ = pairs | "{label}" >> beam.GroupByKey() | beam.Map(print)
"""


@pytest.fixture
def place(tmp_path: Path) -> DiskPlace:
    """A checkpoint of a stream."""
    made = DiskPlace(tmp_path / "checkpoint")
    open_at(made, Pipeline().signature())
    return made


@pytest.fixture
def lease(place: DiskPlace) -> Iterator[Lease]:
    """The claim of a run that obeys whatever it is told, and ends."""
    lease = take_lease(place, this_holder("first"), timing=Timing(0.02, 0.3))
    over = threading.Event()

    def obey() -> None:
        while not over.wait(0.01):
            for name, _ in take_requests(place, lease.number, lease.commands):
                answer_request(place, lease.number, name, Answer(True, "the run drains"))
                place.write(
                    "ended.json",
                    json.dumps({"format": END.number, "state": "DRAINED", "at": "noon"}).encode(),
                )
                lease.release()

    thread = threading.Thread(target=obey)
    thread.start()
    yield lease
    over.set()
    thread.join()
    lease.release()


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Returns the status of a command, and what it prints."""
    status = main([str(word) for word in words])
    return (status, *capsys.readouterr())


def test_it_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert (caught.value.code, capsys.readouterr().out) == (0, f"penstock {penstock.__version__}\n")


def test_a_drain_waits_for_the_end(
    place: DiskPlace, lease: Lease, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, "status", place.location)
    assert status == 0
    assert "state          running\n" in out
    assert "micro-batches  none yet\n" in out
    assert run(capsys, "drain", place.location, "--wait") == (
        0,
        "the run drains\nended: DRAINED at noon\n",
        "",
    )
    assert "state          ended: DRAINED at noon\n" in run(capsys, "status", place.location)[1]
    assert json.loads(run(capsys, "status", place.location, "--json")[1])["life"] == "ended"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["drain", "/no/such"],
            "the folder is not a penstock checkpoint: it holds nothing\n  in file:///no/such\n",
        ),
        (["cancel", "CHECKPOINT"], "no run holds the checkpoint\n"),
        (["signal", "CHECKPOINT", "flush", "--timeout=-1"], "--timeout is -1\n"),
        (["update", "CHECKPOINT", "/no/such.py"], "there is no file /no/such.py\n"),
    ],
    ids=["no checkpoint", "nobody runs", "timeout", "no program"],
)
def test_what_cannot_be_done_is_refused(
    place: DiskPlace, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [place.location if word == "CHECKPOINT" else word for word in words]
    status, _, err = run(capsys, *named)
    assert (status, err[: len(says)]) == (BAD_INPUT, says)
    assert "\n  hint: " in err


def checkpoint_of(program: Path, location: Path) -> None:
    """Makes the checkpoint of a program, as its run would."""
    from penstock.options.pipeline_options import SparkOptions
    from penstock_conformance.program_graphs import pipeline_of_program
    from penstock_spark.checkpoints.contract.signature import signature_of
    from penstock_spark.lowering.query import heartbeat_of
    from penstock_spark.plan.stream_plan import StreamPlan
    from penstock_spark.runner import SparkRunner

    pipeline = pipeline_of_program(program, ["--mode=streaming"])
    plan = SparkRunner().compiled(pipeline.to_graph(), pipeline.options.view_as(SparkOptions)).plan
    assert isinstance(plan, StreamPlan)
    place = DiskPlace(location)
    open_at(place, signature_of(plan, 2, heartbeat_of(plan, False)))
    place.inside("spark").inside("offsets").write("0", b'v1\n{"batchTimestampMs":0}\n{}')


def test_an_update_starts_a_program_that_fits_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(controlling.os, "execv", lambda _, words: started.append(words))
    program, location = tmp_path / "program.py", tmp_path / "checkpoint"
    program.write_text(PROGRAM.format(options="options=PipelineOptions()", label="Group"))
    checkpoint_of(program, location)
    before = sorted(location.rglob("*"))
    words = ["update", location, program]
    mode = ["--arguments", "--mode=streaming"]
    status, out, _ = run(capsys, *words, "--check", *mode)
    assert (status, out) == (0, "the program fits the checkpoint; its state is unchanged\n")
    assert not started
    assert run(capsys, *words, *mode)[0] == 0
    assert started.pop()[1:] == [
        str(program),
        "--mode=streaming",
        f"--checkpoint_location={location}",
        "--take_over",
    ]
    program.write_text(PROGRAM.format(options="options=PipelineOptions()", label="Renamed"))
    status, _, err = run(capsys, *words, *mode)
    assert status == BAD_INPUT
    assert "if its label is 'Renamed' now, give it the old label again" in err
    program.write_text(PROGRAM.format(options="mode='streaming'", label="Group"))
    status, _, err = run(capsys, *words, *mode)
    assert (status, err.partition("\n")[0]) == (
        BAD_INPUT,
        "the program does not read its command line: its checkpoint_location is None",
    )
    assert not started
    assert sorted(location.rglob("*")) == before


JOB = """
CREATE TABLE goals (team STRING, points BIGINT, at TIMESTAMP, WATERMARK FOR at AS at)
WITH (format = 'json', path = '/data/goals');
CREATE TABLE teams (team STRING) WITH (format = 'json', path = '/data/teams');
CREATE TABLE totals (team STRING, PRIMARY KEY (team) NOT ENFORCED)
WITH (connector = 'database', url = 'sqlite:////data/game.db', 'table' = 'totals');
INSERT INTO teams
SELECT team FROM goals WHERE points > 0 GROUP BY team, TUMBLE(at, INTERVAL '1' MINUTE) HAVING {windowed} > 1
EMIT AFTER WATERMARK;
INSERT INTO totals SELECT team FROM goals GROUP BY team HAVING {total} > 1;
"""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"windowed": "MAX(points)"},
            "'Insert teams/Group' has another CombineFn\n    - sum of BIGINT\n    + max of BIGINT",
        ),
        ({"windowed": "SUM(points) + COUNT(*)"}, "    - sum of BIGINT\n    + sum of BIGINT, count\n"),
        ({"total": "COUNT(points)"}, "'Insert totals/Group' has another CombineFn\n    - sum of BIGINT\n"),
        ({"total": "SUM(DISTINCT points)"}, "+ count of rows, sum of distinct BIGINT"),
        ({}, ""),
    ],
    ids=str,
)
def test_a_job_in_sql_with_other_aggregates_does_not_fit_its_checkpoint(
    tmp_path: Path, change: dict[str, str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program, location = tmp_path / "job.sql", tmp_path / "checkpoint"
    before = {"windowed": "SUM(points)", "total": "SUM(points)"}
    program.write_text(JOB.format(**before))
    checkpoint_of(program, location)
    program.write_text(JOB.format(**{**before, **change}))
    status, out, err = run(capsys, "update", location, program, "--check", "--arguments", "--mode=streaming")
    if says:
        assert status == BAD_INPUT
        assert says in err
    else:
        assert (status, out) == (0, "the program fits the checkpoint; its state is unchanged\n")


def test_an_update_names_the_steps_that_may_keep_a_row_from_being_retracted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, location = tmp_path / "job.sql", tmp_path / "checkpoint"
    program.write_text(JOB.format(windowed="SUM(points)", total="SUM(points)"))
    checkpoint_of(program, location)
    # The first statement emits each window once, so no row of it is retracted.
    program.write_text(JOB.format(windowed="2 * SUM(points)", total="2 * SUM(points)"))
    status, out, _ = run(capsys, "update", location, program, "--check", "--arguments", "--mode=streaming")
    assert status == 0
    assert "a row that was written before stays in its table" in out
    assert "\n  - Insert totals/Where sum" in out
    assert "\n  + Insert totals/Where (2 * sum)" in out
    assert "Insert teams/" not in out


def test_a_batch_cannot_update_a_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, location = tmp_path / "program.py", tmp_path / "checkpoint"
    program.write_text(PROGRAM.format(options="options=PipelineOptions()", label="Group"))
    checkpoint_of(program, location)
    words = ["update", location, program, "--arguments", "--mode=batch"]
    status, _, err = run(capsys, *words)
    assert status == BAD_INPUT
    assert "\n  hint: " in err, sys.argv


def test_the_status_has_the_runs_of_the_checkpoint_the_last_one_first(
    place: DiskPlace, capsys: pytest.CaptureFixture[str]
) -> None:
    minute = 60_000_000
    begun = RunRecord(1, "scores", 0, 90 * minute, "DONE", "1", "4.1.0", 12_345, 0, 7, dropped=31)
    failed = RunRecord(2, "scores", 100 * minute, 101 * minute, "FAILED", error="ValueError in 'Parse'")
    died = RunRecord(3, "scores", 200 * minute, 200 * minute, "RUNNING")
    for record in (begun, failed, died):
        begin_record(place, record)
    status, out, _ = run(capsys, "status", place.location)
    assert status == 0
    header, *rows = out.partition("\nruns\n")[2].splitlines()
    assert header.split() == ["number", "began", "time", "end", "rows", "dropped", "micro-batches", "error"]
    assert [row.split("  ")[1].strip() for row in rows] == ["3", "2", "1"]
    assert "died" in rows[0]
    assert "1970-01-01 01:40:00" in rows[1]
    assert "failed" in rows[1]
    assert "ValueError in 'Parse'" in rows[1]
    assert "1 h 30 min" in rows[2]
    assert "12.3 k" in rows[2]
    assert rows[2].split("k")[1].split() == ["31", "0", "to", "7"]
    _, out, _ = run(capsys, "status", place.location, "--json")
    assert [(each["claim"], each["state"]) for each in json.loads(out)["runs"]] == [
        (1, "DONE"),
        (2, "FAILED"),
        (3, "DIED"),
    ]


def test_the_last_run_that_lives_has_not_died(
    place: DiskPlace, lease: Lease, capsys: pytest.CaptureFixture[str]
) -> None:
    hour_ago = clock.micros() - 3_660_000_000
    begin_record(place, RunRecord(lease.number, "scores", hour_ago, hour_ago, "RUNNING"))
    _, out, _ = run(capsys, "status", place.location, "--json")
    assert [each["state"] for each in json.loads(out)["runs"]] == ["RUNNING"]
    # It runs until now, whenever it last wrote.
    assert "  1 h 1 min  running" in run(capsys, "status", place.location)[1]


def test_the_status_counts_the_micro_batches_that_a_dead_run_has_not_noted(
    place: DiskPlace, capsys: pytest.CaptureFixture[str]
) -> None:
    begin_record(place, RunRecord(1, "scores", 0, 0, "DONE", "1", "4.1.0", 12, 0, 4))
    lease = take_lease(place, this_holder("second"), timing=Timing(0.02, 0.3))
    begin_record(place, RunRecord(lease.number, "scores", 0, 0, "RUNNING"))
    lease.release()
    for log, last in (("offsets", 7), ("commits", 6)):
        for number in range(last + 1):
            place.inside("spark").inside(log).write(str(number), b'v1\n{"batchTimestampMs":0}\n{}')
    [first, second] = json.loads(run(capsys, "status", place.location, "--json")[1])["runs"]
    assert (first["first_batch"], first["last_batch"]) == (0, 4)
    assert (second["state"], second["first_batch"], second["last_batch"]) == ("DIED", 5, 6)


def test_the_status_of_a_checkpoint_whose_only_run_has_failed_before_its_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = DiskPlace(tmp_path / "checkpoint")
    lease = take_lease(place, this_holder("first"), timing=Timing(0.02, 0.3))
    failed = RunRecord(lease.number, "first", 0, 0, "FAILED", error="OSError at step 'Write'", rows=0)
    begin_record(place, failed)
    lease.release()
    status, out, _ = run(capsys, "status", place.location)
    assert status == 0
    says = "stopped by an error; no micro-batch has begun, so its program starts from the beginning\n"
    assert f"state          {says}" in out
    assert "micro-batches  none yet\n" in out
    assert "OSError at step 'Write'" in out
    assert not {"mode", "written by", "sources"} & {line.partition("  ")[0] for line in out.splitlines()}
