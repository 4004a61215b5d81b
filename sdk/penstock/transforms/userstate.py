"""State and timers, under Beam's path (`apache_beam.transforms.userstate`)."""

from penstock.functions.signature import get_dofn_specs as get_dofn_specs
from penstock.functions.signature import is_stateful_dofn as is_stateful_dofn
from penstock.functions.signature import validate_stateful_dofn as validate_stateful_dofn
from penstock.functions.userstate import AccumulatingRuntimeState as AccumulatingRuntimeState
from penstock.functions.userstate import BagRuntimeState as BagRuntimeState
from penstock.functions.userstate import BagStateSpec as BagStateSpec
from penstock.functions.userstate import BaseTimer as BaseTimer
from penstock.functions.userstate import CombiningValueRuntimeState as CombiningValueRuntimeState
from penstock.functions.userstate import CombiningValueStateSpec as CombiningValueStateSpec
from penstock.functions.userstate import MapRuntimeState as MapRuntimeState
from penstock.functions.userstate import MapStateSpec as MapStateSpec
from penstock.functions.userstate import OrderedListRuntimeState as OrderedListRuntimeState
from penstock.functions.userstate import OrderedListStateSpec as OrderedListStateSpec
from penstock.functions.userstate import ReadModifyWriteRuntimeState as ReadModifyWriteRuntimeState
from penstock.functions.userstate import ReadModifyWriteStateSpec as ReadModifyWriteStateSpec
from penstock.functions.userstate import RuntimeState as RuntimeState
from penstock.functions.userstate import RuntimeTimer as RuntimeTimer
from penstock.functions.userstate import SetRuntimeState as SetRuntimeState
from penstock.functions.userstate import SetStateSpec as SetStateSpec
from penstock.functions.userstate import StateSpec as StateSpec
from penstock.functions.userstate import Timer as Timer
from penstock.functions.userstate import TimerSpec as TimerSpec
from penstock.functions.userstate import UserStateContext as UserStateContext
from penstock.functions.userstate import on_timer as on_timer
from penstock.functions.userstate import on_window_expiration as on_window_expiration
