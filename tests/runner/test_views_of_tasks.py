"""The side inputs of a worker: each is decoded once, however many tasks read it, and is not kept twice."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from penstock.elements.bounded_window import GlobalWindow
from penstock.windows.window_fn import GlobalWindows
from penstock_spark.worker import views
from penstock_spark.worker.batch import Batch, encode_page
from penstock_spark.worker.program import ViewSpec
from penstock_spark.worker.views import BroadcastContents, View
from tests.runner.plain_runner import Broadcast


def broadcast() -> Any:
    return Broadcast([encode_page(Batch([number])) for number in range(5)])


def test_tasks_of_a_process_decode_a_side_input_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []
    decode = views.decode_page
    monkeypatch.setattr(views, "decode_page", lambda page: decoded.append(page) or decode(page))
    shared = broadcast()
    for _ in range(3):
        assert BroadcastContents(shared).of(GlobalWindow()) == [0, 1, 2, 3, 4]
    assert len(decoded) == 5
    assert shared.value == [], "what is decoded is not kept in bytes as well"


def test_what_is_decoded_goes_with_the_broadcast() -> None:
    shared = broadcast()
    BroadcastContents(shared).of(GlobalWindow())
    assert shared in views._DECODED
    gone = weakref.ref(shared)
    del shared
    gc.collect()
    assert gone() is None


def test_a_task_may_change_its_list_without_the_next_one_seeing_it() -> None:
    shared = broadcast()
    for make in (None, lambda elements: elements):
        for _ in range(2):
            spec = ViewSpec(0, "list", (), GlobalWindows(), None, make, "the step")
            found = View(spec, BroadcastContents(shared)).of(GlobalWindow())
            assert found == [0, 1, 2, 3, 4]
            found.clear()
