"""The shape of everything that batches are pushed through inside a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from penstock.functions.combinefn import CombineFn
from penstock_spark.worker.batch import Batch

Records = Iterator[Any]
"""Arrow record batches that are ready to leave the stage; every push hands them up, so that none pile up."""


class Consumer(Protocol):
    def push(self, batch: Batch) -> Records:
        """Takes a batch; returns the Arrow record batches that became ready."""


class Node:
    """A step at work in a task, or a writer; most need nothing done before the first batch and after the last."""

    def push(self, batch: Batch) -> Records:
        raise NotImplementedError

    def setup(self) -> None:
        """Called once, before the first batch."""

    def start_bundle(self) -> None:
        """Called before the first batch of a bundle."""

    def finish_bundle(self) -> Records:
        """Called after the last batch of a bundle."""
        return iter(())

    def finish(self) -> Records:
        """Called once, after the last bundle."""
        return iter(())

    def teardown(self) -> None:
        """Called once, at the very end, also after an error."""


class Combining:
    """The life cycle of a CombineFn, in a node that may have one; `_guard` names the step in its errors."""

    combine: CombineFn | None
    _guard: Callable[..., Any]

    def setup(self) -> None:
        if self.combine is not None:
            self._guard(self.combine.setup)

    def teardown(self) -> None:
        if self.combine is not None:
            self._guard(self.combine.teardown)


class Tee(Node):
    """Pushes every batch to each of its consumers in turn."""

    def __init__(self, consumers: Sequence[Consumer]) -> None:
        self.consumers = consumers

    def push(self, batch: Batch) -> Records:
        for consumer in self.consumers:
            yield from consumer.push(batch)
