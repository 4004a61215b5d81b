"""Which window of a side input an element sees, under Beam's path (`apache_beam.transforms.sideinputs`)."""

from penstock.absent import hint_at_absent_names
from penstock.windows.side_input_windows import (
    SIDE_INPUT_PREFIX,
    SIDE_INPUT_REGEX,
    default_window_mapping_fn,
    get_sideinput_index,
)

__all__ = ["SIDE_INPUT_PREFIX", "SIDE_INPUT_REGEX", "default_window_mapping_fn", "get_sideinput_index"]

hint_at_absent_names(globals())
