"""The stateless steps of a level at work: wired up once for a micro-batch, with packets as their end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from penstock_spark.operators.program import Program
from penstock_spark.operators.pushing import Node, Records
from penstock_spark.operators.stage import Stage
from penstock_spark.shards.program import LevelProgram, PacketWriterSpec
from penstock_spark.shards.writer import Outbox, PacketWriter


class StreamStage(Stage):
    """A level's steps and writers.

    Args:
        level: The level.
        partition: The number of the task, or of the shard.
        outbox: Where packets go.
    """

    def __init__(self, level: LevelProgram, partition: int, outbox: Outbox) -> None:
        self.outbox = outbox
        program = Program(level.run, level.number, (), level.steps, level.writers)  # type: ignore[arg-type]
        super().__init__(program, partition, {})

    def _writer(self, spec: Any) -> Node:
        assert isinstance(spec, PacketWriterSpec)
        return PacketWriter(spec.label, spec.level, spec.where, self.outbox, self.container(spec.label))

    @contextmanager
    def running(self) -> Iterator[Callable[[Records], None]]:
        """Sets everything up, and starts and ends a bundle around what is done with it.

        Yields:
            Takes what a push handed up: nothing leaves a level but by packets.
        """
        started: list[Any] = []
        failed = True
        try:
            for node in self.nodes:
                started.append(node)
                node.setup()
            for node in self.nodes:
                node.start_bundle()
            yield _exhaust
            for node in self.nodes:
                _exhaust(node.finish_bundle())
            for node in self.nodes:
                _exhaust(node.finish())
            failed = False
        finally:
            for node in started:
                _torn_down(node, failed)


def _exhaust(records: Records) -> None:
    for _ in records:
        raise AssertionError("a step of a level gave rows")


def _torn_down(node: Any, failed: bool) -> None:
    try:
        node.teardown()
    except Exception:
        if not failed:
            raise
