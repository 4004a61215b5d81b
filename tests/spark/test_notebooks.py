"""What a notebook asks of PCollections: their elements, without running the pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.periodicsequence import PeriodicImpulse

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def test_collect_runs_only_the_steps_that_lead_to_a_collection(tmp_path: Path) -> None:
    pipeline = beam.Pipeline()
    numbers = pipeline | beam.Create(range(100))
    totals = numbers | beam.Map(lambda n: (n % 2, n)) | beam.CombinePerKey(sum)
    _ = numbers | "Wrong" >> beam.Map(lambda n: n / 0) | beam.io.WriteToText(str(tmp_path / "out"))
    assert sorted(totals.collect()) == [(0, 2450), (1, 2500)]
    assert sorted(totals.collect()) == [(0, 2450), (1, 2500)]
    assert list(tmp_path.iterdir()) == []


def test_head_gives_so_many_elements_and_fewer_only_if_there_are_no_more() -> None:
    pipeline = beam.Pipeline()
    numbers = pipeline | beam.Create([*range(50), None])
    assert len(numbers.head()) == 5
    assert sorted(numbers.head(60), key=repr) == sorted([*range(50), None], key=repr)
    assert (numbers | beam.Filter(lambda n: n == 49)).head(3) == [49]
    assert numbers.head(0) == (pipeline | "Nothing" >> beam.Create([])).head() == []


def test_head_runs_a_task_only_if_the_ones_before_had_too_few_elements(tmp_path: Path) -> None:
    def touched(number: int) -> int:
        (tmp_path / f"seen-{number}").touch()
        return number

    spread = beam.Pipeline() | beam.Create(range(1000)) | beam.Reshuffle() | beam.Map(touched)
    assert len(spread.head(3)) == 3
    assert len(list(tmp_path.glob("seen-*"))) < 1000


def test_what_has_no_first_elements_is_refused() -> None:
    pipeline = beam.Pipeline()
    with pytest.raises(
        ValueError, match=r"head needs a number of elements, but got -1\n  at .*\n  hint: pass"
    ):
        (pipeline | beam.Create([1])).head(-1)
    with pytest.raises(
        UnsupportedByRunner, match="a stream cannot be collected: it does not end\n  at step 'show'"
    ):
        (pipeline | PeriodicImpulse()).head()


def test_bounded_elements_of_a_streaming_pipeline_are_collected_as_a_batch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = PipelineOptions([], mode="streaming", checkpoint_location=str(tmp_path / "kept"), live_port=0)
    pipeline = beam.Pipeline(options=options)
    assert sorted((pipeline | beam.Create([1, 2, 3])).collect()) == [1, 2, 3]
    assert not (tmp_path / "kept").exists()
    assert "no effect" not in caplog.text


def test_an_error_of_a_step_names_it() -> None:
    wrong = beam.Pipeline() | beam.Create([0]) | "Divide" >> beam.Map(lambda n: 1 / n)
    with pytest.raises(ZeroDivisionError, match="while running 'Divide'"):
        wrong.head()
