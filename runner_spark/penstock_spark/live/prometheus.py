"""A snapshot as metrics in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from penstock.machines.records import MAX_MICROS
from penstock_spark.live.elements import StepElements
from penstock_spark.live.snapshot import GroupingNow, RunSnapshot

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_Sample = tuple[Mapping[str, str], float | None]


def metrics_text(now: RunSnapshot) -> str:
    r"""Returns the metrics, without unknown ones.

    >>> now = RunSnapshot("a\"b", "r", "batch", "RUNNING", 0, 2_000_000, rows_in=7)
    >>> print(metrics_text(now), end="")
    # HELP penstock_up 1 while the run continues, 0 when it is over.
    # TYPE penstock_up gauge
    penstock_up{name="a\"b",run="r",mode="batch",state="RUNNING"} 1
    # HELP penstock_run_seconds The time since the start of the run.
    # TYPE penstock_run_seconds gauge
    penstock_run_seconds{run="r"} 2
    # HELP penstock_rows_in_total Rows that the sources have read.
    # TYPE penstock_rows_in_total counter
    penstock_rows_in_total{run="r"} 7
    """
    return "".join(_families(now))


def _families(now: RunSnapshot) -> Iterator[str]:
    run = {"run": now.run}
    of_run = {"name": now.name, **run, "mode": now.mode, "state": now.state}
    yield _family("up", "gauge", "1 while the run continues, 0 when it is over.", [(of_run, not now.is_over)])
    yield _family("run_seconds", "gauge", "The time since the start of the run.", [(run, now.seconds)])
    yield _family("rows_in_total", "counter", "Rows that the sources have read.", [(run, now.rows_in)])
    lag = _seconds(now.processing_lag_micros)
    yield _family(
        "processing_lag_seconds", "gauge", "How far processing time is behind the clock.", [(run, lag)]
    )
    if now.pace is not None:
        share = now.pace.busy_share
        yield _family("busy_ratio", "gauge", "The share of a minute that micro-batches took.", [(run, share)])
    if now.checkpoint is not None:
        sizes = [
            ({**run, "of": "all"}, now.checkpoint.bytes),
            ({**run, "of": "state"}, now.checkpoint.state_bytes),
        ]
        yield _family("checkpoint_bytes", "gauge", "The size of the files of the checkpoint.", sizes)
    yield from _elements(now, run)
    yield from _sources(now, run)
    yield from _groupings(now, run)
    yield from _batches(now, run)


def _elements(now: RunSnapshot, run: Mapping[str, str]) -> Iterator[str]:
    """Yields the counts of steps alone: with composites, a sum over labels would count elements twice."""
    of = [({**run, "step": one.label}, one) for one in now.elements]
    taken = [(labels, one.elements_in) for labels, one in of]
    yield _family("elements_in_total", "counter", "Elements that a step has received.", taken)
    given = [sample for labels, one in of for sample in _samples_out(labels, one)]
    yield _family("elements_out_total", "counter", "Elements that a step has emitted, by tag.", given)


def _samples_out(labels: Mapping[str, str], one: StepElements) -> Iterator[_Sample]:
    if one.elements_out is not None:
        yield {**labels, "tag": ""}, one.elements_out - sum(one.tagged.values())
    for tag, count in one.tagged.items():
        yield {**labels, "tag": tag}, count


def _sources(now: RunSnapshot, run: Mapping[str, str]) -> Iterator[str]:
    of = [({**run, "source": source.label}, source) for source in now.sources]
    families = {
        "rows": ("source_rows_total", "counter", "Rows that a source has read."),
        "backlog": ("source_backlog", "gauge", "Offsets that exist but are not read yet."),
        "rejected": ("source_rejected_total", "counter", "Elements whose time could not be read."),
        "partitions": ("source_partitions", "gauge", "Partitions of a source."),
        "skew": ("source_skew", "gauge", "Offsets between the partitions that are furthest apart."),
    }
    for field, (name, kind, text) in families.items():
        yield _family(name, kind, text, [(labels, getattr(source, field)) for labels, source in of])


def _groupings(now: RunSnapshot, run: Mapping[str, str]) -> Iterator[str]:
    of = [({**run, "grouping": grouping.label}, grouping) for grouping in now.groupings]
    marks = [
        ({**labels, "side": side}, _seconds(micros))
        for labels, grouping in of
        for side, micros in (("input", grouping.input_micros), ("output", grouping.output_micros))
    ]
    yield _family("watermark_seconds", "gauge", "The watermark, in seconds since 1970.", marks)
    yield _family(
        "event_lag_seconds",
        "gauge",
        "How far the output's watermark is behind processing time.",
        [(labels, _seconds(grouping.event_lag_micros)) for labels, grouping in of],
    )
    panes = [sample for labels, grouping in of for sample in _panes(labels, grouping)]
    yield _family("panes_total", "counter", "Panes and retractions, by timing.", panes)
    dropped = [(labels, float(grouping.dropped)) for labels, grouping in of]
    yield _family("dropped_total", "counter", "Elements that were dropped as late.", dropped)
    keys = [(labels, float(grouping.open_keys)) for labels, grouping in of]
    yield _family("open_keys", "gauge", "Keys with state.", keys)
    windows = [(labels, grouping.open_windows) for labels, grouping in of]
    yield _family("open_windows", "gauge", "Windows with state, counted for each key.", windows)
    sizes = [(labels, float(grouping.state_bytes)) for labels, grouping in of]
    yield _family("state_bytes", "gauge", "The size of their state.", sizes)
    skews = [
        ({**labels, "of": name}, spread.skew)
        for labels, grouping in of
        for name, spread in (
            ("keys", grouping.keys_by_shard),
            ("bytes", grouping.bytes_by_shard),
            ("seconds", grouping.micros_by_shard),
        )
        if spread is not None
    ]
    yield _family("shard_skew", "gauge", "The largest shard, in times the average.", skews)


def _panes(labels: Mapping[str, str], grouping: GroupingNow) -> Iterator[_Sample]:
    for timing in ("early", "on_time", "late", "retracted"):
        yield {**labels, "timing": timing}, getattr(grouping, timing)


def _batches(now: RunSnapshot, run: Mapping[str, str]) -> Iterator[str]:
    last = now.micro_batches[-1:]
    numbers: list[_Sample] = [(run, batch.number) for batch in last]
    yield _family("micro_batch", "gauge", "The number of the last finished micro-batch.", numbers)
    times = [
        ({**run, "phase": name}, millis / 1000) for batch in last for name, millis in batch.millis.items()
    ]
    yield _family("micro_batch_seconds", "gauge", "Where the time of the last micro-batch went.", times)


def _family(name: str, kind: str, text: str, samples: Iterable[_Sample]) -> str:
    known = [(labels, value) for labels, value in samples if value is not None]
    if not known:
        return ""
    lines = [f"# HELP penstock_{name} {text}", f"# TYPE penstock_{name} {kind}"]
    lines += [f"penstock_{name}{{{_labels(labels)}}} {float(value):.15g}" for labels, value in known]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _seconds(micros: int | None) -> float | None:
    return None if micros is None or micros >= MAX_MICROS else micros / 1_000_000
