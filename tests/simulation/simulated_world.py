"""One world with a seed: time, processes that may end at any moment, and actors of which one runs at a time.

An actor is a thread that runs only while it has the turn. It passes the turn on where it waits, and where it touches a
file. The seed decides who is next, so a seed repeats everything that happened.
"""

from __future__ import annotations

import contextvars
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from penstock.metrics.execution import set_current
from penstock.utils.clock import Clock

START_MICROS = 1_700_000_000_000_000
NEVER = 1 << 62
"""A time that does not come."""

_STEPS_MAX = 60_000
"""So many operations are enough for any program: one that needs more goes round in circles."""


class Crash(BaseException):
    """The process has ended: nothing of it continues."""


class Stuck(Exception):
    """No actor continues, or all of them run forever."""


@dataclass(eq=False)
class Process:
    """A process of a machine; a driver, or what its executors run."""

    name: str
    machine: str
    number: int
    is_dead: bool = False
    operations: int = 0  # The number of files it has changed.
    dies_after: int | None = None  # It dies before, or after, it has made this number of changes.
    fails_at: int | None = None  # The disk refuses the change with this number.
    stalls_at: int | None = None  # It stands still for long at the change with this number.
    has_stalled: bool = False
    slow_until: int = 0  # Until then it makes no change: a long pause of its collector, or of its disk.


@dataclass(frozen=True)
class Chances:
    """The probabilities of unlikely events."""

    turn: float = 0.1  # Another actor is next where one touches a file.
    twice: float = 0.05  # A task runs twice.
    straggler: float = 0.02  # The other attempt of a task continues when the task is long done.
    lost: float = 0.03  # Rows that were kept have to be computed again.
    pause: float = 0.004  # A process stands still for a while.
    broken: float = 0.03  # A connection to something beside Spark breaks.


CALM = Chances(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(eq=False)
class Actor:
    name: str
    process: Process | None
    target: Callable[[], None]
    until_micros: int = 0  # It waits until then,
    ready: Callable[[], bool] | None = None  # or until this is so.
    is_over: bool = False
    turn: threading.Lock = field(default_factory=threading.Lock)
    task: Any = None  # The Spark task that it runs.

    def __post_init__(self) -> None:
        self.turn.acquire()

    def may_go_on(self, now_micros: int) -> bool:
        if self.process is not None and self.process.is_dead:
            return True
        return self.until_micros <= now_micros or (self.ready is not None and self.ready())


class _Thread:
    """A thread of ours, which is used again for other actors: to start one takes longer than most actors do."""

    _free: list[_Thread] = []
    _own = threading.local()

    def __init__(self) -> None:
        self._has_work = threading.Lock()
        self._has_work.acquire()
        self._work: Callable[[], None] = lambda: None
        threading.Thread(target=self._follow, daemon=True).start()

    @classmethod
    def run_next(cls, work: Callable[[], None]) -> None:
        thread = cls._free.pop() if cls._free else cls()
        thread._work = work
        thread._has_work.release()

    @classmethod
    def is_free_again(cls) -> None:
        """Called by the thread itself, while no other actor has the turn."""
        cls._free.append(cls._own.thread)

    def _follow(self) -> None:
        self._own.thread = self
        while True:
            self._has_work.acquire()
            # State of an earlier actor in the thread is not there for the next one.
            set_current(None)
            contextvars.Context().run(self._work)


class World:
    """Everything that the seed decides.

    Args:
        seed: Of all decisions.
        chances: How often what is unlikely happens.
        traced: Whether to write down what happens.
    """

    def __init__(self, seed: int, chances: Chances = Chances(), traced: bool = False) -> None:
        self.random = Random(seed)
        self.names = Random(seed + 1)
        self.chances = chances
        self.trace: list[str] | None = [] if traced else None
        self.now_micros = START_MICROS
        self.set_by_micros = 0  # By how much the clocks have been set.
        self.errors: list[BaseException] = []  # What has ended an actor that should not end so.
        self.stops: BaseException | None = None
        self.steps = 0
        self.me = Actor("conductor", None, lambda: None)
        self.current = self.me
        self.actors = [self.me]

    # Actors.

    def start(self, name: str, process: Process | None, target: Callable[[], None]) -> Actor:
        actor = Actor(name, process, target)
        self.actors.append(actor)
        _Thread.run_next(lambda: self._run(actor))
        return actor

    def wait(self, seconds: float | None = None, ready: Callable[[], bool] | None = None) -> None:
        """Gives the turn away until something is so, or some time has passed."""
        me = self.current
        self._check(me)
        me.until_micros = NEVER if seconds is None else self.now_micros + max(1, round(seconds * 1e6))
        me.ready = ready
        self._hand_on(me)

    def look(self, text: str) -> None:
        """Something is looked at that others may change: they may go first."""
        me = self.current
        self._check(me)
        self.steps += 1
        # A disk is slow now and then.
        self.now_micros += 300 if self.random.random() < 0.97 else 100_000
        if self.steps > _STEPS_MAX:
            self.stop(Stuck("nothing comes to an end"))
            self._check(me)
        process = me.process
        if process is not None and process.slow_until > self.now_micros:
            self.wait((process.slow_until - self.now_micros) / 1e6)
        elif self.random.random() < self.chances.turn:
            me.until_micros = self.now_micros
            self._hand_on(me)
        if self.trace is not None:
            self.note(text)

    def change(self, text: str, act: Callable[[], Any]) -> Any:
        """A file is changed: before and after that, the process may end."""
        self.look(text)
        process = self.current.process
        if process is None:
            return act()
        process.operations += 1
        stalls = process.stalls_at == process.operations
        if stalls or self.random.random() < self.chances.pause:
            seconds = 15 if stalls else self.random.randrange(20)
            process.slow_until = self.now_micros + seconds * 1_000_000
            process.has_stalled = process.has_stalled or seconds > 4
            self.note(f"{process.name} stands still for {seconds} seconds")
            self.wait(seconds)
        if process.fails_at == process.operations:
            self.note(f"the disk refuses: {text}")
            raise OSError(28, "No space left on device")
        if process.dies_after == process.operations:
            is_done = self.random.random() < 0.5
            if is_done:
                act()
            self.note(f"{process.name} dies {'after' if is_done else 'before'}: {text}")
            self.kill(process)
            raise Crash
        return act()

    def kill(self, process: Process) -> None:
        process.is_dead = True

    def note(self, text: str) -> None:
        if self.trace is not None:
            seconds = (self.now_micros - START_MICROS) / 1e6
            self.trace.append(f"{seconds:10.4f} {self.current.name}: {text}")

    def stop(self, error: BaseException) -> None:
        """Ends everything."""
        self.stops = self.stops or error

    def end(self) -> None:
        """Lets all actors end, whatever they are at."""
        self.stop(Crash())
        while any(not actor.is_over for actor in self.actors[1:]):
            actor = next(actor for actor in self.actors[1:] if not actor.is_over)
            self._give_turn(actor)

    def _run(self, actor: Actor) -> None:
        actor.turn.acquire()
        try:
            if self.stops is None and not (actor.process and actor.process.is_dead):
                actor.target()
        except Crash:
            pass
        except BaseException as error:
            self.errors.append(error)
            self.stop(error)
        finally:
            actor.is_over = True
            self.actors.remove(actor)
            following = self._next(actor)
        _Thread.is_free_again()
        following.turn.release()

    def _check(self, me: Actor) -> None:
        if me is self.me:
            if self.stops is not None and not isinstance(self.stops, Crash):
                raise self.stops
        elif self.stops is not None or (me.process is not None and me.process.is_dead):
            raise Crash

    def _hand_on(self, me: Actor) -> None:
        chosen = self._next(me)
        if chosen is not me:
            chosen.turn.release()
            me.turn.acquire()
            self.current = me
        me.until_micros, me.ready = 0, None
        self._check(me)

    def _give_turn(self, actor: Actor) -> None:
        self.me.until_micros, self.me.ready = 0, None
        actor.turn.release()
        self.me.turn.acquire()
        self.current = self.me

    def _next(self, me: Actor) -> Actor:
        """The next actor; time moves on if none can run."""
        if self.stops is not None:
            self.current = self.me
            return self.me
        while True:
            able = [actor for actor in self.actors if actor.may_go_on(self.now_micros)]
            if able:
                self.current = able[0] if len(able) == 1 else self.random.choice(able)
                return self.current
            soonest = min((actor.until_micros for actor in self.actors), default=NEVER)
            if soonest >= NEVER:
                self.stop(Stuck("everybody waits"))
                self.current = self.me
                return self.me
            self.now_micros = soonest
            self.steps += 1
            if self.steps > _STEPS_MAX:
                self.stop(Stuck("nothing comes to an end"))
                self.current = self.me
                return self.me

    # What stands in for Python's own modules.

    def unique(self) -> uuid.UUID:
        return uuid.UUID(int=self.names.getrandbits(128))


class WorldsClock(Clock):
    """The clocks of the machines, which may be set."""

    def __init__(self, world: World) -> None:
        self._world = world

    def seconds(self) -> float:
        return self.micros() / 1e6

    def micros(self) -> int:
        return self._world.now_micros + self._world.set_by_micros

    def monotonic_seconds(self) -> float:
        return self._world.now_micros / 1e6

    def sleep(self, seconds: float) -> None:
        self._world.wait(seconds)


class Threading:
    """The module `threading`, for the threads of the driver: each is an actor of its process."""

    def __init__(self, world: World) -> None:
        self._world = world

    def Event(self) -> Event:
        return Event(self._world)

    def Lock(self) -> Lock:
        return Lock(self._world)

    def Thread(self, target: Callable[[], None], name: str, daemon: bool) -> Thread:
        return Thread(self._world, target, name)


class Event:
    def __init__(self, world: World) -> None:
        self._world = world
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            # A thread may get its turn long after it could have it.
            late = self._world.random.choice((0.0, 0.0, 0.1, 0.4, 1.5))
            self._world.wait(None if timeout is None else timeout + late, self.is_set)
        return self._is_set


class Lock:
    def __init__(self, world: World) -> None:
        self._world = world
        self._is_free = True

    def __enter__(self) -> None:
        while not self._is_free:
            self._world.wait(None, lambda: self._is_free)
        self._is_free = False

    def __exit__(self, *_: object) -> None:
        self._is_free = True


class Thread:
    def __init__(self, world: World, target: Callable[[], None], name: str) -> None:
        self._world = world
        self._target = target
        self._name = name
        self._actor: Actor | None = None

    def start(self) -> None:
        self._actor = self._world.start(self._name, self._world.current.process, self._target)

    def join(self) -> None:
        actor = self._actor
        assert actor is not None
        if not actor.is_over:
            self._world.wait(None, lambda: actor.is_over)
