"""State and timers, under Beam's path (`apache_beam.transforms.userstate`)."""

from __future__ import annotations

from penstock.functions.runtime_state import (
    AccumulatingRuntimeState,
    BagRuntimeState,
    CombiningValueRuntimeState,
    MapRuntimeState,
    OrderedListRuntimeState,
    ReadModifyWriteRuntimeState,
    RuntimeState,
    SetRuntimeState,
)
from penstock.functions.signature import get_dofn_specs, is_stateful_dofn, validate_stateful_dofn
from penstock.functions.userstate import (
    BagStateSpec,
    BaseTimer,
    CombiningValueStateSpec,
    MapStateSpec,
    OrderedListStateSpec,
    ReadModifyWriteStateSpec,
    RuntimeTimer,
    SetStateSpec,
    StateSpec,
    Timer,
    TimerSpec,
    UserStateContext,
    on_timer,
)
from penstock.functions.window_expiration import on_window_expiration

__all__ = [
    "AccumulatingRuntimeState",
    "BagRuntimeState",
    "BagStateSpec",
    "BaseTimer",
    "CombiningValueRuntimeState",
    "CombiningValueStateSpec",
    "MapRuntimeState",
    "MapStateSpec",
    "OrderedListRuntimeState",
    "OrderedListStateSpec",
    "ReadModifyWriteRuntimeState",
    "ReadModifyWriteStateSpec",
    "RuntimeState",
    "RuntimeTimer",
    "SetRuntimeState",
    "SetStateSpec",
    "StateSpec",
    "Timer",
    "TimerSpec",
    "UserStateContext",
    "get_dofn_specs",
    "is_stateful_dofn",
    "on_timer",
    "on_window_expiration",
    "validate_stateful_dofn",
]
