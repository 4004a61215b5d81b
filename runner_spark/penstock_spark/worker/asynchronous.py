"""An asynchronous DoFn at work in a task: an event loop makes many calls at a time, in rounds.

The loop runs in the thread of the task, and only while a round runs. Between two rounds other steps work, and then no
call is under way that could miss its timeout or keep a service waiting. A round has several times as many calls as may
be made at a time, so that few of them wait for the slowest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from inspect import isawaitable
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

from penstock.error import refusal
from penstock.functions.asynchronous import outputs_of
from penstock.functions.results import check_result
from penstock.functions.signature import MethodSignature
from penstock.metrics.execution import MetricsContainer, set_current
from penstock_spark.reports.failure import fail_step
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.outputs import Outputs, Row
from penstock_spark.worker.pardo import DoFnStep
from penstock_spark.worker.program import StepSpec
from penstock_spark.worker.pushing import Consumer, Records
from penstock_spark.worker.views import Contents

_CALLS_PER_PLACE = 8
"""The number of calls in a round for each call that may run at a time."""

_SECONDS_TO_CANCEL = 5.0
"""The time that cancelled calls get to clean up."""


class HasMoment(Protocol):
    """An object for the outputs of a stream: they take place at the same moment as their element."""

    moment: Any


class _Always:
    """A batch has no moments."""

    moment: object = None


class AsyncStep(DoFnStep):
    """A DoFn with an asynchronous ``process``; a bundle ends when all its calls have ended."""

    def __init__(
        self, spec: StepSpec, outputs: Outputs, metrics: MetricsContainer, contents: Mapping[int, Contents]
    ) -> None:
        super().__init__(spec, outputs, metrics, contents)
        self._calls = Calls(self.dofn.concurrency_max)
        self.outbox: HasMoment = _Always()
        self._waiting: list[tuple[Row, Any, Any]] = []

    def finish_bundle(self) -> Records:
        yield from self.make_calls()
        yield from super().finish_bundle()

    def teardown(self) -> None:
        """Ends the loop as well, and the calls that an error has left."""
        try:
            for _, call, _ in self._waiting:
                if isinstance(call, Coroutine):
                    call.close()
            super().teardown()
        finally:
            self._calls.close()

    def gather(self, row: Row, call: object) -> Records:
        """Keeps a call for the next round; runs the round if it has its calls."""
        self._waiting.append((row, call, self.outbox.moment))
        if len(self._waiting) >= self._calls.per_round:
            yield from self.make_calls()

    def make_calls(self) -> Records:
        """Runs a round of the calls that wait, and sends their outputs on, in the order of their elements."""
        if not self._waiting:
            return
        set_current(self.metrics)
        waiting, self._waiting = self._waiting, []
        rows = [row for row, _, _ in waiting]
        failed, results = self._calls.run([call for _, call, _ in waiting])
        if failed is not None:
            place, error = failed
            fail_step(error, self.spec.where, rows[place][:1])
        # The calls of several moments run together; after its own moment, an output could be late.
        now = self.outbox.moment
        moments = (moment for _, _, moment in waiting)
        made = zip(moments, zip(results, rows, strict=True), strict=True)
        for moment, own in groupby(made, key=itemgetter(0)):
            self.outbox.moment = moment
            yield from self.outputs.route(map(itemgetter(1), own))
        self.outbox.moment = now

    def _call(self, name: str, method: MethodSignature | None) -> Any:
        result = super()._call(name, method)
        if isawaitable(result) or isinstance(result, AsyncIterable):
            return self._guard(self._calls.run_one, result)
        return result

    def _choose_loop(self) -> Consumer:
        arguments = self._bound(self.dofn.process_signature())
        return _Gathering(arguments.row_call(self.dofn.process), arguments.needs_window, self)


class _Gathering:
    """Prepares a call for each row. The arguments are made at once: views may change later."""

    def __init__(self, call: Callable[[Any], Any], each_window: bool, step: AsyncStep) -> None:
        self.call = call
        self.each_window = each_window
        self.step = step

    def push(self, batch: Batch) -> Records:
        for row in (batch.explode() if self.each_window else batch).rows():
            set_current(self.step.metrics)
            try:
                call = self.call(row)
            except Exception as error:
                fail_step(error, self.step.spec.where, row[:1])
            yield from self.step.gather(row, call)


class Calls:
    """The event loop of a step, which is made when it is first needed."""

    def __init__(self, at_a_time: int) -> None:
        self.at_a_time = at_a_time
        self.per_round = at_a_time * _CALLS_PER_PLACE
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, calls: list[Any]) -> tuple[tuple[int, BaseException] | None, list[Any]]:
        """Makes all calls: the place and the error of the first that failed, or None; and the outputs of each."""
        made = _Round(calls)
        self._running().run_until_complete(made.run(self.at_a_time))
        return made.failed, made.results

    def run_one(self, call: object) -> object:
        """The result of an asynchronous method of the life cycle."""
        return self._running().run_until_complete(outputs_of(call))

    def close(self) -> None:
        """Cancels what still runs, and closes the loop. Threads that the calls have started are not waited for."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        try:
            loop.run_until_complete(_cancel(asyncio.all_tasks(loop)))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            # Python's own choice for `asyncio.to_thread` has only a few threads, which fewer calls would share.
            self._loop.set_default_executor(ThreadPoolExecutor(self.at_a_time, "penstock-call"))
        return self._loop


class _Round:
    """The calls of a round. The first that fails cancels all others."""

    def __init__(self, calls: list[Any]) -> None:
        self.failed: tuple[int, BaseException] | None = None
        self.results: list[Any] = [None] * len(calls)
        self._calls = calls
        self._under_way: set[asyncio.Task[None]] = set()

    async def run(self, at_a_time: int) -> None:
        places: Iterator[int] = iter(range(len(self._calls)))
        ended = asyncio.get_running_loop().create_future()

        def start() -> None:
            place = next(places, None)
            if place is not None:
                task = asyncio.create_task(self._make(place))
                self._under_way.add(task)
                task.add_done_callback(go_on)
            elif not self._under_way and not ended.done():
                ended.set_result(None)

        def go_on(task: asyncio.Task[None]) -> None:
            self._under_way.discard(task)
            if ended.done():
                return
            if self.failed is not None:
                ended.set_result(None)
            else:
                start()

        try:
            for _ in range(min(at_a_time, len(self._calls))):
                start()
            await ended
        finally:
            await _cancel(self._under_way)
            for place in places:
                if isinstance(self._calls[place], Coroutine):
                    self._calls[place].close()

    async def _make(self, place: int) -> None:
        call, self._calls[place] = self._calls[place], None
        try:
            outputs = await outputs_of(call)
            if outputs is not None:
                check_result(outputs)
                outputs = outputs if type(outputs) in (list, tuple) else list(outputs)
            self.results[place] = outputs
        except asyncio.CancelledError as error:
            if self.failed is None and not _is_asked_to_end():
                self.failed = place, _make_cancelled_error(error)
            raise
        except BaseException as error:
            # A KeyboardInterrupt would leave the loop, and then the calls under way could not end in order.
            if self.failed is None:
                self.failed = place, error


def _is_asked_to_end() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _make_cancelled_error(error: BaseException) -> BaseException:
    what = "the call was cancelled, and not by the pipeline"
    hint = (
        "catch asyncio.CancelledError where the call cancels what it waits for, or let it raise another error"
    )
    made = refusal(RuntimeError, what, hint=hint)
    made.__cause__ = error
    return made


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels tasks, and lets them clean up for a while."""
    others = {task for task in tasks if task is not asyncio.current_task() and not task.done()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_SECONDS_TO_CANCEL)
