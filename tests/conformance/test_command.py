"""The command ``penstock``: what it plays, prints and writes, and what it refuses."""

from __future__ import annotations

import io
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from penstock.error import RunnerError
from penstock.options.base import render_help
from penstock.pipeline import Pipeline
from penstock_conformance import __main__ as alias
from penstock_conformance import command, pipelines, playing, summary
from penstock_conformance.capabilities import read_chapters
from penstock_conformance.choosing import choose_scenarios, rows_of
from penstock_conformance.outcomes import Outcome, Status, by_row, status_of
from penstock_conformance.parsing import load
from penstock_conformance.playing import outcomes_of, play_on_spark
from penstock_conformance.scenario import MODES, Scenario

SCENARIOS = load()
TEXT = "= {}\nsource: {}\nwindows: FixedWindows(10)\n\nelement 5 at 3\nwatermark 10\n  -> [{}] in [0, 10)\n"
BARE = ["conformance", "--engine", "bare"]


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite of two scenarios, the second of which fails; and where to write."""
    texts = TEXT.format("One <&>", "figure 7", 5), TEXT.format("Two", "S-3", 6)
    (tmp_path / "some.transcript").write_text("\n".join(texts), "utf-8")
    monkeypatch.setattr(command, "load", lambda: load(tmp_path))
    return tmp_path


def test_the_script_is_the_command() -> None:
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    assert settings["project"]["scripts"]["penstock"] == f"{command.__name__}:{command.main.__name__}"


def test_python_runs_the_package_as_the_command(tmp_path: Path) -> None:
    command_line = [sys.executable, "-m", "penstock", *BARE, "--mode", "batch", "--figure", "figure 10"]
    done = subprocess.run(command_line, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 passed, 0 failed")
    wrong = subprocess.run([sys.executable, "-m", "penstock"], capture_output=True, text=True, cwd=tmp_path)
    assert wrong.returncode == command.BAD_INPUT
    assert "see `penstock --help`" in wrong.stderr


def test_it_prints_the_options_of_pipelines(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["options"]) == 0
    assert capsys.readouterr().out.rstrip() == render_help()


def test_it_says_what_failed_and_how_all_went(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([*BARE, "--mode", "streaming"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "some.transcript:9: Two (streaming)",
        "  at some.transcript:14: watermark 10",
        "    missing:    -> [6] in [0, 10)",
        "    unexpected: -> [5] in [0, 10) on-time first last #0 nonspeculative #0 insert at 9.999999 (clock: -inf)",
        "                             streaming",
        "some                         failed",
        "1 passed, 1 failed",
    ]
    assert err == "streaming    some                         1 passed, 1 failed\n"
    assert command.main([*BARE, "--figure", "7"]) == 0


def test_the_module_is_the_same_command(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert alias.main(["--engine", "bare", "--figure", "S-3"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 1 failed"


@pytest.mark.parametrize("words", ["mode turbo", "figure 99", "figure 9-9", "engine turbo", "turbo"])
def test_what_it_does_not_know_is_refused_in_three_parts(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_of_main:
        raise SystemExit(command.main([*BARE, *f"--{words}".split()]))
    assert exit_of_main.value.code == 2
    what, hint = capsys.readouterr().err.splitlines()
    assert words.split()[-1] in what
    assert hint.startswith("  hint: ")


def test_without_a_command_it_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_of_main:
        command.main([])
    assert exit_of_main.value.code == 2
    assert "`penstock --help`" in capsys.readouterr().err


def test_the_table_is_made_of_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([*BARE, "--table", "--figure", "7"]) == 2
    assert capsys.readouterr().err.startswith("the table needs all scenarios\n  hint: ")


def test_the_table_is_made_in_a_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "read_chapters", lambda: read_chapters(tmp_path))
    assert command.main([*BARE, "--table"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-2:] == [
        f"  not in {tmp_path}",
        "  hint: clone the project, and install it with -e",
    ]


def test_a_figure_that_is_not_written_for_a_mode_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([*BARE, "--mode", "batch", "--figure", "figure 11"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "no selected scenario is written for the mode batch",
        "  hint: leave out --mode, or select more figures",
    ]


def test_where_nothing_can_be_written_nothing_is_played(
    two: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([*BARE, "--report", str(two / "some.transcript" / "below")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("no report can be written to ")
    assert err.endswith("\n  hint: pass another folder to --report\n")


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (
            RunnerError("there is no Java", where="", hint="install one"),
            "there is no Java\n  hint: install one\n",
        ),
        (
            OSError("no such master\n at ..."),
            "Spark cannot run a pipeline of one element: OSError: no such master\n"
            "  hint: read Spark's output above, and check --master\n",
        ),
    ],
)
def test_a_spark_that_cannot_start_is_an_error_and_no_failure(
    error: Exception, what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(pipeline: Pipeline) -> None:
        assert pipeline.options.get_all_options()["master"] == "local[3]"
        raise error

    monkeypatch.setattr(Pipeline, "run", run)
    assert command.main(["conformance", "--figure", "7", "--master", "local[3]"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    # The lines before it are of this file.
    assert err.endswith(what)


def test_pipelines_get_the_master_and_folders_of_their_own_and_record_what_is_to_be_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []

    class Stopped(Exception):
        pass

    def run(pipeline: Pipeline) -> None:
        seen.append(pipeline.options.get_all_options(drop_default=True))
        raise Stopped

    monkeypatch.setattr(playing, "start", lambda **arguments: None)
    monkeypatch.setattr(Pipeline, "run", run)
    asked = ["--master", "local[3]", "--checkpoint", "/shared", "--report", str(tmp_path)]
    assert command.main(["conformance", "--figure", "7", *asked]) == 1
    assert [options["mode"] for options in seen] == ["streaming", "micro_batch", "batch"]
    assert {options["master"] for options in seen} == {"local[3]"}
    assert {options["record_events"] for options in seen} == {command.RECORDED_EVENTS}
    folders = {options["checkpoint_location"] for options in seen}
    assert len(folders) == 3
    assert all(folder.startswith("/shared/conformance-") for folder in folders)


def test_what_spark_never_plays_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(playing, "start", lambda: None)
    assert command.main(["conformance", "--figure", "must_fail/refused"]) == 2
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "nothing was played: it is refused before anything happens",
        "  hint: add --engine bare",
    ]


def test_a_run_that_breaks_fails_what_was_to_be_in_it_and_says_what_is_never_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def reports(scenarios: list[Scenario], mode: str, tell: Any) -> Iterator[pipelines.Report]:
        yield pipelines.Report(scenarios[0], None)
        raise ValueError("broken")

    monkeypatch.setattr(pipelines, "run_scenarios", reports)
    some = choose_scenarios(SCENARIOS, ["7", "8", "refused", "unmet"])
    outcomes = list(play_on_spark([one for one in some if "streaming" in one.modes], "streaming"))
    statuses = {outcome.scenario.title: outcome.status for outcome in outcomes}
    assert statuses["Paper, figure 7: processing time, accumulating"] is Status.PASSED
    assert statuses["Paper, figure 8: processing time, discarding"] is Status.FAILED
    others = [outcome for outcome in outcomes if outcome.scenario.place.startswith("must_fail/")]
    assert {outcome.status for outcome in others} == {Status.NOT_PLAYED}
    assert {outcome.text for outcome in others} == {
        "it is refused before anything happens",
        "it tests the harness that plays the bare machine",
    }
    [failed] = (outcome for outcome in outcomes if outcome.status is Status.FAILED)
    assert failed.text.splitlines()[1] == "  the run broke: ValueError: broken"


def test_what_is_left_out_without_a_reason_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "run_scenarios", lambda scenarios, mode, tell: iter(()))
    [outcome] = play_on_spark(choose_scenarios(SCENARIOS, ["7"]), "streaming")
    assert outcome.status is Status.FAILED
    assert outcome.text.endswith("\n  it was not played, and nothing says why")


def test_the_junit_file_has_a_case_for_each_scenario_and_mode(
    two: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([*BARE, "--report", str(two / "a" / "report")]) == 1
    root = ElementTree.parse(two / "a" / "report" / "junit.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("2", "1", "0")
    cases = root.findall("./testsuite[@name='streaming']/testcase")
    assert [case.get("name") for case in cases] == ["One <&> (streaming)", "Two (streaming)"]
    [failure] = root.iter("failure")
    assert failure.get("message") == "at some.transcript:14: watermark 10"
    assert "missing:    -> [6] in [0, 10)" in (failure.text or "")


def test_the_page_has_a_drawing_of_each_scenario(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("penstock_figures")
    assert command.main([*BARE, "--report", str(two)]) == 1
    page = (two / "index.html").read_text("utf-8")
    assert page.count("<svg") == 2
    assert "One &lt;&amp;&gt;, in streaming" in page
    assert "missing:" in page


def test_the_list_has_each_title_once_and_plays_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["conformance", "--list"]) == 0
    out, err = capsys.readouterr()
    titles = [line for line in out.splitlines() if not line.startswith(" ")]
    assert sorted(titles) == sorted(scenario.title for scenario in SCENARIOS)
    assert err == ""


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("7", 1),
        ("figure 7", 1),
        ("Paper, figure 7", 1),
        ("2-10", 2),
        ("3-2", 2),
        ("panes/holds", 10),
        ("p-1", 1),
    ],
)
def test_a_name_chooses_what_it_is_the_name_of(name: str, number: int) -> None:
    found = choose_scenarios(SCENARIOS, [name])
    assert len(found) == number


def test_several_names_choose_all_in_the_order_of_the_files() -> None:
    both = choose_scenarios(SCENARIOS, ["S-9", "7"])
    one, other = choose_scenarios(SCENARIOS, ["S-9"]), choose_scenarios(SCENARIOS, ["7"])
    assert both == tuple(scenario for scenario in SCENARIOS if scenario in (*one, *other))
    assert len(both) == len(one) + len(other) > 2


def test_all_transcripts_pass_on_the_bare_machine_in_all_modes_and_have_rows() -> None:
    outcomes = list(outcomes_of(SCENARIOS, MODES, "bare"))
    assert [outcome.text for outcome in outcomes if outcome.status is Status.FAILED] == []
    assert len(outcomes) == sum(len(scenario.modes) for scenario in SCENARIOS)
    assert by_row(outcomes).keys() == {row for scenario in SCENARIOS for row in rows_of(scenario)}


def test_the_worst_of_several_scenarios_is_the_status_of_their_row() -> None:
    [scenario] = choose_scenarios(SCENARIOS, ["figure 12"])
    assert [status_of(scenario, mode, None) for mode in MODES] == [
        Status.PASSED,
        Status.DIFFERS,
        Status.DIFFERS,
    ]
    worst = [Status.PASSED, Status.FAILED, Status.DIFFERS]
    assert by_row(Outcome(scenario, "batch", status) for status in worst)["figure 12"] == {
        "batch": Status.FAILED
    }


def test_on_a_terminal_a_line_counts_while_it_is_played() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    outcomes = [
        Outcome(scenario, "batch", Status.PASSED) for scenario in choose_scenarios(SCENARIOS, ["3", "4"])
    ]
    plain, terminal = io.StringIO(), Terminal()
    assert (
        list(summary.print_totals(outcomes, plain))
        == list(summary.print_totals(outcomes, terminal))
        == outcomes
    )
    assert plain.getvalue().count("\n") == terminal.getvalue().count("\n") == 1
    assert "\r" not in plain.getvalue()
    assert [line.split()[-4] for line in terminal.getvalue().split("\r")[1:]] == ["1", "2", "2"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--remote=host:15002"],
            "'host:15002' is neither the address of a Spark Connect server nor a local master",
        ),
        (
            ["--remote=local", "--engine=bare"],
            "--remote names the Spark to play on, and --engine bare another",
        ),
        (["--remote=local", "--master=yarn"], "--remote names the Spark to play on, and --master another"),
    ],
    ids=["no address", "engine", "master"],
)
def test_a_remote_that_is_no_server_or_one_of_two_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["conformance", *arguments]) == command.BAD_INPUT
    first, hint = capsys.readouterr().err.splitlines()
    assert first.startswith(said)
    assert hint.startswith("  hint: ")


@pytest.mark.soak
@pytest.mark.spark
def test_the_figures_are_played_on_a_new_server() -> None:
    program = [sys.executable, "-m", "penstock", "conformance", "--remote=local", "--figure", "figure 10"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "3 passed, 0 failed"
