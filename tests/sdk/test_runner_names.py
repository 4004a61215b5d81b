"""Names of runners, states of runs, and what the base classes do."""

import sys
import types

import pytest

from penstock.base.engine import SPARK_RUNNER
from penstock.runners import (
    DirectRunner,
    PipelineResult,
    PipelineRunner,
    PipelineState,
    SparkRunner,
    create_runner,
)
from penstock.transforms.core import Create


def test_the_spark_runner_takes_its_options_by_name():
    runner = SparkRunner(master="local[3]")
    assert type(runner).__module__ == SPARK_RUNNER[0]
    assert runner.arguments == {"master": "local[3]"}


@pytest.fixture
def spark_runner(monkeypatch):
    """A stand-in for the runner's package."""

    class SparkRunner(PipelineRunner):
        def run_pipeline(self, pipeline, options):
            self.graph = pipeline.to_graph()
            return PipelineResult(PipelineState.DONE)

    module = types.ModuleType(SPARK_RUNNER[0])
    module.SparkRunner = SparkRunner
    monkeypatch.setitem(sys.modules, SPARK_RUNNER[0], module)
    return SparkRunner


@pytest.mark.parametrize(
    ("name", "local_only"),
    [
        (None, False),
        ("", False),
        ("SparkRunner", False),
        ("spark", False),
        ("SPARKRUNNER", False),
        ("DirectRunner", True),
        ("direct", True),
        ("BundleBasedDirectRunner", True),
        ("FnApiRunner", True),
        ("PrismRunner", True),
        ("InProcessRunner", True),
    ],
)
def test_names_give_the_spark_runner_and_beams_local_ones_keep_it_here(spark_runner, name, local_only):
    runner = create_runner(name)
    assert type(runner) is spark_runner
    assert runner.local_only is local_only
    assert create_runner().local_only is False


def test_the_names_are_classes_that_can_be_called_and_that_tell_whose_runner_one_is(spark_runner):
    here, anywhere = DirectRunner(), SparkRunner()
    assert (here.local_only, anywhere.local_only) == (True, False)
    assert isinstance(here, DirectRunner)
    assert isinstance(here, SparkRunner)
    assert isinstance(here, PipelineRunner)
    assert isinstance(anywhere, SparkRunner)
    assert not isinstance(anywhere, DirectRunner)
    assert isinstance(create_runner("DirectRunner"), DirectRunner)
    assert not isinstance(PipelineRunner(), SparkRunner)


def test_a_class_derived_from_a_name_of_the_runner_is_refused_with_the_true_class():
    with pytest.raises(TypeError, match=r"(?s)MyRunner derives from.*penstock_spark.runner.SparkRunner"):

        class MyRunner(DirectRunner):
            pass


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("DataflowRunner", "DirectRunner is Spark on this machine"),
        ("SparkRuner", "did you mean SparkRunner?"),
        ("a.b.Flink", ""),
    ],
)
def test_other_names_are_refused_with_a_hint(name, hint):
    with pytest.raises(
        ValueError, match=f"(?s)Unexpected pipeline runner: {name}.*hint: .*{hint.rstrip('?')}"
    ):
        create_runner(name)


def test_without_the_runners_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, SPARK_RUNNER[0], None)
    with pytest.raises(
        ImportError, match=r"(?s)cannot be imported.*in penstock_spark.runner.*pip install 'penstock\[java\]'"
    ):
        create_runner("spark")


def test_a_runner_runs_a_transform_or_a_function_of_the_start(spark_runner):
    runner = create_runner()
    assert runner.run(Create([1])).state == "DONE"
    assert runner.run(lambda start: start | "Numbers" >> Create([1])).state == "DONE"
    assert [step.label for step in runner.graph.steps] == ["Numbers"]


def test_a_run_that_has_ended_needs_no_waiting_and_another_cannot_be_waited_for():
    done = PipelineResult(PipelineState.DONE)
    assert (done.wait_until_finish(), done.cancel(), done.state) == ("DONE", "DONE", "DONE")
    running = PipelineResult(PipelineState.RUNNING)
    for method in (running.wait_until_finish, running.cancel, done.metrics):
        with pytest.raises(NotImplementedError, match="PipelineResult cannot"):
            method()


def test_aggregated_values_are_empty_with_a_warning(caplog):
    assert PipelineResult(PipelineState.DONE).aggregated_values("x") == {}
    assert "metrics()" in caplog.text


def test_the_terminal_states_are_beams():
    states = [value for name, value in vars(PipelineState).items() if name.isupper()]
    terminal = {state for state in states if PipelineState.is_terminal(state)}
    assert terminal == {"DONE", "FAILED", "CANCELLED", "UPDATED", "DRAINED"}
    assert len(states) == 16


def test_the_base_runner_runs_nothing():
    with pytest.raises(NotImplementedError, match="run_pipeline"):
        PipelineRunner().run_pipeline(None, None)
    with pytest.raises(NotImplementedError, match="explain"):
        PipelineRunner().explain(None, None)
