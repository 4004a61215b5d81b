"""An object of a `Shared` is made once in a process, and lives until nobody needs it."""

import gc
import pickle
import threading
import time
import weakref

import pytest

from penstock.utils.shared import Shared


class Model:
    pass


def test_copies_of_a_handle_share_one_object_and_other_handles_have_their_own():
    handle = Shared()
    copy = pickle.loads(pickle.dumps(handle))
    assert copy.acquire(Model) is handle.acquire(Model)
    assert Shared().acquire(Model) is not handle.acquire(Model)


def test_an_object_lives_until_another_is_acquired_and_nobody_uses_it():
    handle, other = Shared(), Shared()
    first = weakref.ref(handle.acquire(Model))
    gc.collect()
    assert handle.acquire(Model) is first()
    used = other.acquire(Model)
    gc.collect()
    assert first() is None
    assert handle.acquire(Model) is not None
    assert other.acquire(Model) is used


def test_another_tag_makes_the_object_anew():
    handle = Shared()
    old = handle.acquire(Model, tag=1)
    assert handle.acquire(Model, tag=1) is old
    assert handle.acquire(Model, tag=2) is not old


def test_many_threads_make_one_object():
    made = []

    def make():
        time.sleep(0.05)
        made.append(Model())
        return made[0]

    handle = Shared()
    threads = [threading.Thread(target=handle.acquire, args=(make,)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_nothing_is_kept_of_a_constructor_that_gives_nothing_or_fails():
    handle = Shared()
    assert handle.acquire(lambda: None) is None
    with pytest.raises(OSError, match="no model"):
        handle.acquire(lambda: (_ for _ in ()).throw(OSError("no model")))
    assert isinstance(handle.acquire(Model), Model)


def test_what_ends_when_another_is_acquired_may_acquire_in_turn():
    handle, other = Shared(), Shared()

    class Last:
        def __del__(self):
            other.acquire(Model)

    handle.acquire(Last)
    assert isinstance(Shared().acquire(Model), Model)


@pytest.mark.parametrize("built_in", [list, dict])
def test_an_object_that_cannot_be_shared_is_refused_with_what_to_do(built_in):
    with pytest.raises(TypeError, match=rf"(?s)type {built_in.__name__} cannot be shared.*class Table"):
        Shared().acquire(built_in)
