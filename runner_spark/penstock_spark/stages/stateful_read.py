"""The reduce side of a stateful DoFn in a batch: each key's elements in order of event time, then the end."""

from __future__ import annotations

from penstock.machines.records import MAX_MICROS, Dropped, MethodOutput, Times
from penstock.machines.stateful import Reaction, StatefulMachine
from penstock_spark.folding.machine_read import BUFFER_BYTES, DROPPED, KeyElements, Rows
from penstock_spark.worker.program import StatefulRoot
from penstock_spark.worker.pushing import Node, Records
from penstock_spark.worker.stateful import StatefulStep

_BEFORE_THE_END = Times()
_AT_THE_END = Times(MAX_MICROS, MAX_MICROS)
_MOST_RESULTS = 1_000


class StatefulReader(Node):
    """Plays the elements of each key on the machine of a stateful DoFn.

    Until all input is read, the watermark is at its minimum, and the clock does not advance. Then the clock goes
    to the last timer that is set: a timer that sets itself again is not awaited. Then timers of event time
    fire in their order, and windows end. Results wait until there are enough for a batch, or until as much
    has been read as memory allows.
    """

    def __init__(self, root: StatefulRoot, step: StatefulStep) -> None:
        self._step = step
        self._machine = StatefulMachine(step, root.lateness_micros)
        self._key_elements = KeyElements()
        self._clear()

    def _clear(self) -> None:
        self._given: list[MethodOutput] = []
        self._results = 0
        self._read_bytes = 0

    def read_key(self, encoded_key: bytes, rows: Rows) -> Records:
        machine, state = self._machine, None
        for key, element, size_bytes in self._key_elements.read(encoded_key, rows):
            if state is None:
                state = machine.new_key(key)
            self._read_bytes += size_bytes
            reactions = machine.element(state, element, _BEFORE_THE_END)
            if reactions:
                yield from self._take(reactions)
        if state is not None:
            last_micros = state.timers.latest(is_event_time=False)
            if last_micros is not None:
                clock = _BEFORE_THE_END._replace(clock_micros=last_micros)
                yield from self._take(machine.advance_clock(state, clock))
            yield from self._take(machine.advance_watermark(state, _AT_THE_END))

    def flush(self) -> Records:
        if self._given:
            given = self._given
            self._clear()
            yield from self._step.give(given)

    def _take(self, reactions: list[Reaction]) -> Records:
        for one in reactions:
            if isinstance(one, Dropped):
                self._step.metrics.inc(DROPPED[one.reason])
            else:
                self._given.append(one)
                self._results += len(one.results)
        if self._results >= _MOST_RESULTS or self._read_bytes >= BUFFER_BYTES:
            yield from self.flush()
