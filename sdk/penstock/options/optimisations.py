"""The runner's optimisations, by name, and what each does."""

from __future__ import annotations

OPTIMISATIONS = {
    "early_combining": "elements of a stream are combined by the tasks that read them",
    "one_round": "a fan-out of hot keys is left out in batch, where values are combined before the shuffle anyway",
    "lifted_combiners": "the values of a GroupByKey that are only combined are combined before the shuffle",
    "window_columns": "simple groupings of a stream keep windows in columns, instead of a machine for each key",
    "inline_sinks": "the last step of a stream makes the rows of its only sink, without a Spark step between them",
    "one_operator": "a stream with one shard has one stateful operator, and not one for each level of groupings",
    "native_sums": "Spark adds up sums and counts of known types in a batch",
    "native_columns": "Spark computes with the columns of a source on its own, where it can",
    "native_streams": "Spark computes a whole stream of columns on its own, or the sums of its rounds, where it can",
    "column_bounds": "columns whose numbers are small, according to the footers of files, are added up unchanged",
    "driver_rows": "the driver makes rows of a few values of the program on its own, without a task of Python",
    "shortcuts": "workers take the elements of a window, or the sums of all windows, together",
    "whole_batches": "batches pass unchanged from one `process_batch` to the next, even if there is a `process`",
}
"""The runner's optimisations, by name: ``without`` switches them off, and none changes a result."""
