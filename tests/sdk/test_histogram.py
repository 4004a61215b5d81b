"""A histogram that numbers are recorded in counts, interpolates and compares as Beam's does."""

import pytest

from penstock.utils import histogram as own

RECORDS = ([1, 2, 3], [-1, 5], [0.5, 99, 100], [0, 49.9, 50], [7] * 10 + [30])


@pytest.mark.parametrize("records", RECORDS, ids=str)
def test_percentiles_are_those_of_beam(records: list[float]) -> None:
    beam = pytest.importorskip("apache_beam.utils.histogram")

    def answers(module):
        histogram = module.Histogram(module.LinearBucket(0, 10, 5))
        histogram.record(*records)
        return [histogram.total_count(), histogram.p50(), histogram.p90(), histogram.p99()] + [
            histogram.get_percentile_info()
        ]

    assert answers(own) == answers(beam)


def test_a_copy_goes_its_own_way_and_counts_add_up() -> None:
    first = own.Histogram(own.LinearBucket(0, 10, 5))
    first.record(1)
    second = first.copy()
    assert (first, hash(first)) == (second, hash(second))
    second.record(2)
    assert first != second
    assert first.combine(second).total_count() == 3
    second.clear()
    assert second.total_count() == 0
    with pytest.raises(RuntimeError, match="no record"):
        second.p99()
