"""Lowers a logical plan to transforms: each relation becomes a PCollection of tuples in the global window."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.construction.pipeline import Pipeline
from penstock.construction.pvalue import PCollection
from penstock.construction.retractions import may_retract
from penstock.functions.combinefn import CombineFn
from penstock.functions.expression_combinefn import ExpressionCombineFn
from penstock.relations.joins import AT_END, AT_ONCE, JoinRows
from penstock.relations.validity import ValidFrom
from penstock.relations.validity import ValidityJoin as JoinByValidity
from penstock.scalars import functions
from penstock.scalars.casting import whole_micros
from penstock.scalars.row_functions import AtTime, Pairing, Predicate, Projection
from penstock.scalars.tree import Column, Scalar, columns_of, replace_scalars, shift_columns
from penstock.scalars.types import SqlType, to_hint
from penstock.sql.aggregates.extremes import FORM, SINGLE, place_of
from penstock.sql.execution import steps
from penstock.sql.execution.aggregating import (
    SideCounts,
    SqlAggregates,
    argument_of,
    describe_calls,
    expressions_of,
)
from penstock.sql.execution.borders import BorderFn, Comparing
from penstock.sql.execution.chain_steps import (
    AggregateRows,
    ChainStep,
    FilterChanges,
    GenerateChanges,
    JoinPairs,
    RankRows,
    SelectRows,
)
from penstock.sql.execution.equality import CanonicalRow, canonicalize_keys, has_forms, row_canonicalizer_of
from penstock.sql.execution.final_over import FinalOverFn
from penstock.sql.execution.first_rows import first_rows
from penstock.sql.execution.generating import GeneratedRows
from penstock.sql.execution.grouping_sets import InSets
from penstock.sql.execution.key_chains import ChainDoFn, ChainFn, HeldChainFn
from penstock.sql.execution.over import OverFn, RowsOver
from penstock.sql.execution.over_results import OverResults
from penstock.sql.execution.row_order import RowOrder
from penstock.sql.execution.spark_aggregates import write_grouping
from penstock.sql.language.dialect import Delay, Emit
from penstock.sql.plan.key_chains import ChainInput, KeyChain, Link, chain_of
from penstock.sql.plan.lineage import simplify_bound
from penstock.sql.plan.relations import (
    Aggregate,
    AggregateCall,
    Border,
    ColumnDef,
    Columns,
    Emitted,
    Expand,
    Filter,
    Generate,
    Join,
    Order,
    Over,
    Period,
    Project,
    Relation,
    Scan,
    SetOperation,
    Top,
    Union_,
    Valid,
    ValidityJoin,
    Values,
    Windowed,
    columns_as_scalars,
    map_scalars,
    origin_of,
    own_scalars,
    skip_projections,
)
from penstock.transforms.combining.combine import CombinePerKey
from penstock.transforms.combining.ready_combiners import CountCombineFn
from penstock.transforms.elements.create import Create
from penstock.transforms.elements.pardo import Filter as FilterRows
from penstock.transforms.elements.pardo import FlatMap, Map, ParDo
from penstock.transforms.grouping.group_by_key import Flatten, GroupByKey
from penstock.transforms.grouping.windowing import WindowInto
from penstock.typehints import KV, Optional, Tuple
from penstock.typehints import Any as AnyHint
from penstock.utils.timestamp import MAX_TIMESTAMP, Duration
from penstock.windows.triggers import (
    AccumulationMode,
    AfterArrival,
    AfterProcessingTime,
    AfterWatermark,
    Repeatedly,
    TriggerFn,
)
from penstock.windows.window_fn import (
    FixedWindows,
    GlobalWindows,
    Sessions,
    SlidingWindows,
    WindowFn,
)

_RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING
_FOREVER = Duration(micros=MAX_TIMESTAMP.micros // 4)


@dataclass(frozen=True)
class Mode:
    """Says how relations are lowered.

    Attributes:
        final: Whether only the final rows matter, since all inputs end: then each grouping emits its result once.
    """

    final: bool


class Lowering:
    """Lowers one query.

    Args:
        inputs: The rows of each input, as tuples.
        stamps: For some inputs, the column that has the timestamps of its rows, and is never NULL.
        mode: How.
        pipeline: Where rows that the query itself contains are made.
    """

    def __init__(
        self, inputs: Mapping[str, Any], stamps: Mapping[str, str], mode: Mode, pipeline: Pipeline
    ) -> None:
        self._inputs = inputs
        self._stamps = stamps
        self._mode = mode
        self._pipeline = pipeline
        self._done: dict[int, tuple[Relation, Any]] = {}
        self._labels: dict[str, int] = {}

    def lower(self, relation: Relation) -> PCollection[Any]:
        """Returns the rows of a relation; a relation that is used twice is computed once."""
        known = self._done.get(id(relation))
        if known is None:
            known = self._done[id(relation)] = relation, self._lower(relation)
        return known[1]

    def _lower(self, relation: Relation) -> PCollection[Any]:
        if not self._mode.final and isinstance(relation, (Aggregate, Join, Top)):
            # Of a chain, each relation in front of the last one has no step of its own.
            chain = chain_of(relation, _has_windows)
            if chain is not None:
                return self._chain(chain)
        match relation:
            case Scan():
                return self._scan(relation)
            case Values():
                rows = self._pipeline | self._label("Values") >> Create(list(relation.rows))
                return rows | self._label("Values") >> Map(steps.same).with_output_types(
                    hint_of(relation.columns)
                )
            case Project():
                return self._project(relation)
            case Filter():
                return self._filtered(self.lower(relation.input), "Where", relation.condition)
            case Windowed():
                return self._windows(relation)
            case Aggregate():
                return self._aggregate(relation, None)
            case Expand():
                rows = self.lower(relation.input)
                expanded = FlatMap(InSets(relation)).with_output_types(hint_of(relation.columns))
                return rows | self._label("Grouping sets") >> expanded
            case Generate():
                rows = self.lower(relation.input)
                generated = FlatMap(GeneratedRows(relation)).with_output_types(hint_of(relation.columns))
                return rows | self._label("Generate") >> generated
            case Join():
                return self._join(relation)
            case Valid():
                return self._valid(relation)
            case ValidityJoin():
                return self._validity_join(relation)
            case Union_():
                return tuple(map(self.lower, relation.inputs)) | self._label("Union") >> Flatten()
            case SetOperation():
                return self._counted(relation)
            case Top():
                return self._top(relation)
            case Over():
                return self._over(relation)
            case Border():
                return self._border(relation)
        return self._emitted(relation)

    def _label(self, name: str) -> str:
        """A label that no other step of the query has."""
        number = self._labels[name] = self._labels.get(name, 0) + 1
        return name if number == 1 else f"{name} {number}"

    def _changing(self, rows: PCollection[Any], windowfn: WindowFn | None = None) -> PCollection[Any]:
        """The rows in windows whose groupings give each change, or the final result alone."""
        return self._triggered(rows, windowfn or GlobalWindows(), Emit(before=Delay(0)))

    def _triggered(self, rows: PCollection[Any], windowfn: WindowFn, emit: Emit) -> PCollection[Any]:
        if self._mode.final:
            return rows | self._label("Window") >> WindowInto(windowfn)
        lateness = 0 if emit.watermark and emit.after is None else _FOREVER
        if isinstance(windowfn, GlobalWindows):
            lateness = 0
        return rows | self._label("Window") >> WindowInto(
            windowfn,
            trigger=trigger_of(emit),
            accumulation_mode=_RETRACTING,
            allowed_lateness=lateness,
        )

    def _in_one_window(self, rows: PCollection[Any]) -> PCollection[Any]:
        return rows | self._label("All time") >> WindowInto(GlobalWindows())

    # Rows one by one

    def _filtered(self, rows: PCollection[Any], label: str, condition: Scalar) -> PCollection[Any]:
        keep = FilterRows(Predicate(condition)).with_output_types(rows.element_type)
        return rows | self._label(label) >> keep

    def _scan(self, relation: Scan) -> PCollection[Any]:
        rows: PCollection[Any] = self._inputs[relation.name]
        if relation.arrival and not may_retract(rows):
            arrival = ParDo(steps.AddArrivalTimeOfInsertions()).with_output_types(hint_of(relation.columns))
            rows = rows | self._label("Arrival") >> arrival
        elif relation.arrival:
            rows = (
                rows
                | self._label("Row as arrival key")
                >> Map(steps.WholeRowAsKey(form_of(relation.columns[:-1]))).with_output_types(
                    KV[rows.element_type, AnyHint]
                )
                | self._label("Arrival")
                >> ParDo(steps.AddArrivalTime()).with_output_types(hint_of(relation.columns))
            )
        if relation.until_micros is not None:
            rows = rows | self._label("As of") >> FilterRows(_Until(relation.until_micros)).with_output_types(
                rows.element_type
            )
        return rows

    def _project(self, relation: Project) -> PCollection[Any]:
        scalars, inner = relation.scalars, relation.input
        while isinstance(inner, Project):
            scalars = tuple(replace_scalars(each, inner.scalars) for each in scalars)
            inner = inner.input
        if isinstance(inner, ValidityJoin) and inner.with_validity:
            width = len(inner.columns) - 2
            if all(max(columns_of(each), default=0) < width for each in scalars):
                inner = replace(inner, with_validity=False, columns=inner.columns[:-2])
        rows = self.lower(inner)
        plain = [each.index for each in scalars if isinstance(each, Column)]
        if plain == list(range(len(inner.columns))) == list(range(len(scalars))):
            return rows
        return rows | self._label("Select") >> Map(Projection(scalars)).with_output_types(
            hint_of(relation.columns)
        )

    def _windows(self, relation: Windowed) -> PCollection[Any]:
        windows = steps.InWindows(
            relation.kind, relation.time, relation.size_micros, relation.step_micros, relation.offset_micros
        )
        return self.lower(relation.input) | self._label("Windows") >> FlatMap(windows).with_output_types(
            hint_of(relation.columns)
        )

    # Groupings

    def _aggregate(self, relation: Aggregate, emit: Emit | None) -> PCollection[Any]:
        """A grouping, whose results are given at each change, or when a clause says."""
        found = remove_windows(relation)
        windowfn: WindowFn = GlobalWindows()
        if found is None:
            rows, keys, calls, windowed = self.lower(relation.input), relation.keys, relation.calls, None
        else:
            inner, keys, calls, windowed = found
            rows = self._at_times(inner, windowed.time)
            windowfn = windowfn_of(windowed)
        retracts = may_retract(rows)
        places = (relation.start, relation.end) if windowed else (None, None)
        in_columns = write_grouping(keys, calls, *places)
        keys, calls, forms = _with_forms(keys, calls)
        combine, values, results = _combiner(calls, retracts, has_empty=not relation.keys)
        pairs_type = KV[key_hint(keys), AnyHint]
        pairing = Pairing(canonicalize_keys(keys), values, in_row=results == "counted")
        pairs = rows | self._label("Key") >> Map(pairing).with_output_types(pairs_type)
        if retracts and (single := next((call for call in calls if call.name == SINGLE), None)):
            one_row = steps.OneRow(place_of(single))
            pairs = pairs | self._label("One row") >> ParDo(one_row).with_output_types(pairs_type)
        if not relation.keys:
            pairs = (pairs, self._seed(pairs_type)) | self._label("With the empty group") >> Flatten()
        pairs = self._triggered(pairs, windowfn, emit or Emit(before=Delay(0)))
        grouped = pairs | self._label("Group") >> CombinePerKey(combine)
        has_zone = windowed is None or windowed.time.type.name == "TIMESTAMP"
        rows_of = steps.GroupRows(
            len(keys),
            *places,
            has_zone,
            results,
            not relation.keys,
            forms,
            in_columns,
        )
        return self._in_one_window(self._rows(grouped, rows_of, relation.columns))

    def _at_times(self, relation: Relation, time: Scalar) -> PCollection[Any]:
        """The rows with the time of an expression as their timestamps; rows without a time go."""
        rows = self.lower(relation)
        if self._is_stamped(*origin_of(relation, time)):
            return rows
        if time.type.nullable:
            rows = self._filtered(rows, "With time", functions.call("IS NOT NULL", [time]))
        return rows | self._label("At time") >> Map(AtTime(time)).with_output_types(rows.element_type)

    def _is_stamped(self, relation: Relation, time: Scalar) -> bool:
        """True if the rows come with this time as their timestamp."""
        while isinstance(relation, Generate) and columns_of(time) <= {*range(len(relation.input.columns))}:
            relation, time = origin_of(relation.input, time)
        if not (isinstance(relation, Scan) and isinstance(time, Column)):
            return False
        return self._stamps.get(relation.name) == relation.columns[time.index].name

    def _seed(self, hint: object) -> PCollection[Any]:
        """Emits no row, but makes the one group that is there even without rows."""
        nothing = self._pipeline | self._label("Empty group") >> Create([(steps.NO_KEY, None)])
        return nothing | self._label("Empty group") >> Map(steps.same).with_output_types(hint)

    def _rows(
        self, grouped: PCollection[Any], rows_of: Callable[..., Any], columns: Columns
    ) -> PCollection[Any]:
        """Makes rows of what a grouping emits."""
        return grouped | self._label("Rows") >> ParDo(steps.ResultChanges(rows_of)).with_output_types(
            hint_of(columns)
        )

    def _counted(self, relation: SetOperation) -> PCollection[Any]:
        forms = any(has_forms(each.type) for each in relation.columns)
        sides = tuple(
            self.lower(side)
            | self._label(name)
            >> Map(_OnSide(pair, form_of(side.columns), forms)).with_output_types(
                KV[hint_of(side.columns), AnyHint]
            )
            for name, pair, side in (("Left", (1, 0), relation.left), ("Right", (0, 1), relation.right))
        )
        both = self._changing(sides | self._label("Both") >> Flatten())
        grouped = both | self._label("Count") >> CombinePerKey(SideCounts())
        return self._in_one_window(
            self._rows(grouped, steps.SetOperationRows(relation.kind, relation.all), relation.columns)
        )

    def _top(self, relation: Top) -> PCollection[Any]:
        rows = self.lower(relation.input)
        pairs = rows | self._label("Partition") >> Map(
            Pairing(canonicalize_keys(relation.keys), None)
        ).with_output_types(KV[key_hint(relation.keys), AnyHint])
        form = form_of(relation.input.columns)
        first = first_rows(relation.orders, relation.limit, relation.offset, may_retract(rows), form)
        grouped = self._changing(pairs) | self._label("Top") >> CombinePerKey(first)
        return self._in_one_window(
            self._rows(grouped, steps.FirstRows(relation.offset, relation.numbered), relation.columns)
        )

    def _over(self, relation: Over) -> PCollection[Any]:
        rows = self.lower(relation.input)
        results, form = OverResults(relation, argument_of), form_of(relation.input.columns)
        pairs = rows | self._label("Partition") >> Map(
            Pairing(canonicalize_keys(relation.keys), None)
        ).with_output_types(KV[key_hint(relation.keys), hint_of(relation.input.columns)])
        label, hint = self._label("Over"), hint_of(relation.columns)
        if self._mode.final and not may_retract(rows):
            grouped = pairs | self._label("Partitions") >> GroupByKey()
            return grouped | label >> FlatMap(RowsOver(results)).with_output_types(hint)
        compute = (
            FinalOverFn(results, relation.final == "at once")
            if relation.final
            else OverFn(results, form, may_retract(rows))
        )
        return self._in_one_window(pairs) | label >> ParDo(compute).with_output_types(hint)

    def _top_of_windows(self, relation: Top, emitted: Emitted) -> PCollection[Any] | None:
        """The first rows of each window, given when the watermark has passed it; None if partitions are not windows."""
        emit = emitted.emit
        if not emit.watermark or emit.before is not None or emit.after is not None or emitted.past is None:
            return None
        found = rank_in_windows(relation)
        if found is None:
            return None
        origin, past = origin_of(emitted.input, emitted.past)
        past = simplify_bound(past)
        if origin is not relation or not (isinstance(past, Column) and found.bounds.get(past.index) == 1):
            return None
        rows = self._at_times(found.rows, found.windowed.time)
        columns = tuple(ColumnDef(f"column{at}", each.type) for at, each in enumerate(found.scalars))
        pairing = Pairing(canonicalize_keys(found.keys), found.scalars, in_row=True)
        pairs_type = KV[key_hint(found.keys), hint_of(columns)]
        pairs = rows | self._label("Partition") >> Map(pairing).with_output_types(pairs_type)
        first = first_rows(found.orders, relation.limit, relation.offset, may_retract(rows), form_of(columns))
        in_windows = self._triggered(pairs, windowfn_of(found.windowed), emit)
        grouped = in_windows | self._label("Top") >> CombinePerKey(first)
        has_zone = found.windowed.time.type.name == "TIMESTAMP"
        rows_of = steps.FirstRowsOfWindow(relation.offset, relation.numbered, found.bounds, has_zone)
        return self._in_one_window(self._rows(grouped, rows_of, relation.columns))

    # Joins

    def _join(self, relation: Join) -> PCollection[Any]:
        widths = len(relation.left.columns), len(relation.right.columns)
        sides, alone = [], []
        preserved = _preserved(relation.kind)
        for at, (side, keys) in enumerate(
            ((relation.left, relation.left_keys), (relation.right, relation.right_keys))
        ):
            rows = self.lower(side)
            needed = tuple(key for place, key in enumerate(keys) if place not in relation.null_safe)
            if (has_key := _not_null(needed)) is not None:
                # NULL equals nothing, not even NULL.
                if preserved[at]:
                    without = self._filtered(rows, "Without key", functions.call("NOT", [has_key]))
                    alone.append(self._alone(without, relation, at, widths))
                rows = self._filtered(rows, "With key", has_key)
            hint = KV[key_hint(keys), hint_of(side.columns)]
            keyed = rows | self._label("Key") >> Map(
                Pairing(canonicalize_keys(keys), None)
            ).with_output_types(hint)
            sides.append(self._changing(keyed))
        unjoined = AT_END if self._mode.final and any(preserved) and relation.kind != "semi" else AT_ONCE
        matching = None if relation.condition is None else _Matching(relation.condition)
        kind, forms = relation.kind, (form_of(relation.left.columns), form_of(relation.right.columns))
        joined = tuple(sides) | self._label("Join") >> JoinRows(kind, unjoined, matching, forms)
        shown = _of_left if kind in ("semi", "left_anti") else _Pair(*widths)
        result = self._in_one_window(joined) | self._label("Joined") >> Map(shown).with_output_types(
            hint_of(relation.columns)
        )
        if not self._mode.final and may_retract(result):
            net = steps.NetChanges(form_of(relation.columns))
            result = result | self._label("Net") >> ParDo(net).with_output_types(result.element_type)
        return (result, *alone) | self._label("With all") >> Flatten() if alone else result

    def _border(self, relation: Border) -> PCollection[Any]:
        sides = []
        for number, (name, side) in enumerate((("Compared", relation.left), ("Bound", relation.right))):
            numbered = Map(Pairing((), None, number=number)).with_output_types(
                KV[key_hint(()), Tuple[int, hint_of(side.columns)]]
            )
            sides.append(self.lower(side) | self._label(name) >> numbered)
        both = self._in_one_window(tuple(sides) | self._label("With bound") >> Flatten())
        order = RowOrder(
            (Order(relation.value, False, True),), tuple(each.type for each in relation.left.columns)
        )
        comparing = Comparing(relation.comparison, relation.bound.type)
        bound, form = Projection((relation.bound,)), form_of(relation.left.columns)
        compare = ParDo(BorderFn(comparing, order, bound, form))
        return both | self._label("Border") >> compare.with_output_types(hint_of(relation.columns))

    def _alone(
        self, rows: PCollection[Any], relation: Join | ValidityJoin, side: int, widths: tuple[int, int]
    ) -> PCollection[Any]:
        if relation.kind == "left_anti":
            return rows
        return rows | self._label("Alone") >> Map(_Padded(side, widths)).with_output_types(
            hint_of(relation.columns)
        )

    def _valid(self, relation: Valid) -> PCollection[Any]:
        values = self._timeline(relation.input, relation.time, relation.keys)
        valid = values | self._label("Valid") >> ValidFrom(form_of(relation.input.columns))
        shown = _ValidRow(relation.time.type.name == "TIMESTAMP")
        return self._in_one_window(valid) | self._label("Validity") >> Map(shown).with_output_types(
            hint_of(relation.columns)
        )

    def _validity_join(self, relation: ValidityJoin) -> PCollection[Any]:
        left, right = relation.left, relation.right
        # NULL equals nothing, not even NULL. Of a FULL JOIN, the right rows without a key come unmatched.
        if (with_key := _not_null(relation.left_keys)) is not None:
            left = Filter(left, with_key)
        if relation.kind != "full" and (with_key := _not_null(relation.right_keys)) is not None:
            right = Filter(right, with_key)
        sides = (
            self._timeline(left, relation.left_time, relation.left_keys),
            self._timeline(right, relation.right_time, relation.right_keys),
        )
        join = JoinByValidity(
            relation.kind,
            with_validity=relation.with_validity,
            forms=(form_of(left.columns), form_of(right.columns)),
        )
        joined = sides | self._label("Validity join") >> join
        has_zone = relation.right_time.type.name == "TIMESTAMP"
        width = len(relation.left.columns)
        widths = width, len(relation.right.columns)
        pair = _ValidPair(*widths, has_zone) if relation.with_validity else _Pair(*widths)
        result = self._in_one_window(joined) | self._label("Joined") >> Map(pair).with_output_types(
            hint_of(relation.columns)
        )
        fits = _not_null((relation.left_time, *relation.left_keys))
        if relation.kind == "inner" or fits is None:
            return result
        without = self.lower(Filter(relation.left, functions.call("NOT", [fits])))
        alone = self._alone(without, relation, 0, (width, len(relation.columns) - width))
        return (result, alone) | self._label("With all") >> Flatten()

    def _timeline(self, relation: Relation, time: Scalar, keys: tuple[Scalar, ...]) -> PCollection[Any]:
        """The rows of a relation with their keys, at their times, in windows that give each change."""
        rows = self._at_times(relation, time)
        hint = KV[key_hint(keys), hint_of(relation.columns)]
        return self._changing(
            rows
            | self._label("Timeline") >> Map(Pairing(canonicalize_keys(keys), None)).with_output_types(hint)
        )

    # Chains

    def _chain(self, chain: KeyChain) -> PCollection[Any]:
        """The rows of a chain, which one step with state computes key by key."""
        places: list[int] = []
        keyed: list[PCollection[Any]] = []
        retracts: list[bool] = []
        steps_of: dict[int, ChainStep] = {}
        for place, link in enumerate(chain.links):
            if isinstance(link, ChainInput):
                rows = self.lower(link.relation)
                retracts.append(may_retract(rows))
                hint = KV[key_hint(link.keys), Tuple[int, hint_of(link.relation.columns)]]
                pairing = Pairing(canonicalize_keys(link.keys), None, number=len(places))
                keyed.append(rows | self._label("Chain key") >> Map(pairing).with_output_types(hint))
                places.append(place)
            else:
                own = [retracts[each] for each in link.inputs]
                steps_of[place] = chain_step(link, own)
                retracts.append(any(own) or may_change_rows(link.relation))
        inputs = keyed[0] if len(keyed) == 1 else tuple(keyed) | self._label("Chain inputs") >> Flatten()
        last = chain.links[-1].relation
        chained: ChainDoFn = ChainFn(tuple(places), steps_of, retracts[-1])
        if chain.emitted is not None and chain.emitted.past is not None:
            last, past = chain.emitted, Projection((chain.emitted.past,))
            form = form_of(last.columns)
            chained = HeldChainFn(tuple(places), steps_of, past, form, chain.is_one_time)
        return self._in_one_window(inputs) | self._label(
            "Chain" if chain.emitted is None else "Emit"
        ) >> ParDo(chained).with_output_types(hint_of(last.columns))

    # Emissions

    def _emitted(self, relation: Emitted) -> PCollection[Any]:
        if self._mode.final:
            return self.lower(relation.input)
        if (direct := self._by_trigger(relation)) is not None:
            return direct
        if (chain := chain_of(relation, _has_windows)) is not None:
            return self._chain(chain)
        rows = self.lower(relation.input)
        columns = columns_as_scalars(relation.columns)
        keys = tuple(columns[at] for at in relation.keys) or columns
        emit = relation.emit
        key_of = steps.RowAsKey(keys)
        pairs = rows | self._label("Emission key") >> FlatMap(
            _WithEnd(key_of, relation.past)
        ).with_output_types(KV[key_hint(keys), AnyHint])
        windowfn: WindowFn = steps.EndsAtTime() if emit.watermark else GlobalWindows()
        lateness = _FOREVER if emit.watermark and emit.after is not None else 0
        placed = pairs | self._label("Emission window") >> WindowInto(windowfn, allowed_lateness=lateness)
        hold = steps.EmitFn(
            emit.watermark,
            None if emit.before is None else emit.before.micros,
            emit.before is not None and emit.before.aligned,
            None if emit.after is None else emit.after.micros,
            form_of(relation.columns),
        )
        emitted = placed | self._label("Emit") >> ParDo(hold).with_output_types(hint_of(relation.columns))
        return self._in_one_window(emitted)

    def _by_trigger(self, relation: Emitted) -> PCollection[Any] | None:
        """The rows, where the trigger of a grouping can be what the clause says; None where it cannot."""
        _, inner = skip_projections(relation.input)
        if isinstance(inner, Top):
            grouped = self._top_of_windows(inner, relation)
            if grouped is None:
                return None
            self._done[id(inner)] = inner, grouped
            return self.lower(relation.input)
        if not isinstance(inner, Aggregate):
            return None
        if relation.emit.watermark and (remove_windows(inner) is None or not _is_window_end(relation)):
            return None
        grouped = self._aggregate(inner, relation.emit)
        self._done[id(inner)] = inner, grouped
        return self.lower(relation.input)


def _has_windows(relation: Relation) -> bool:
    """True if a relation is a grouping in windows of the model."""
    return isinstance(relation, Aggregate) and remove_windows(relation) is not None


def may_change_rows(relation: Relation) -> bool:
    """True if a relation may retract rows when its inputs only insert some."""
    if isinstance(relation, Join):
        return relation.kind in ("left", "left_anti")
    return isinstance(relation, (Aggregate, Top))


def chain_step(link: Link, retracts: Sequence[bool]) -> ChainStep:
    """Returns what computes a relation of a chain.

    Args:
        link: The relation.
        retracts: For each of its inputs, whether rows may be retracted.
    """
    relation, inputs = link
    match relation:
        case Project():
            return SelectRows(inputs, Projection(relation.scalars))
        case Filter():
            return FilterChanges(inputs, Predicate(relation.condition))
        case Generate():
            return GenerateChanges(inputs, GeneratedRows(relation))
        case Top():
            form = form_of(relation.input.columns)
            first = first_rows(relation.orders, relation.limit, relation.offset, retracts[0], form)
            partition = Pairing(canonicalize_keys(relation.keys), None)
            rows_of = steps.FirstRows(relation.offset, relation.numbered)
            return RankRows(inputs, partition, first, retracts[0], rows_of)
        case Aggregate():
            keys, calls, forms = _with_forms(relation.keys, relation.calls)
            combine, values, results = _combiner(calls, retracts[0], has_empty=False)
            pairing = Pairing(canonicalize_keys(keys), values, in_row=results == "counted")
            group = steps.GroupRows(len(keys), None, None, True, results, False, forms)
            return AggregateRows(inputs, pairing, combine, retracts[0], group)
        case Join():
            sides = (relation.left, relation.left_keys), (relation.right, relation.right_keys)
            left, right = (Pairing(canonicalize_keys(keys), None) for _, keys in sides)
            has_left, has_right = (
                None if (has_key := _not_null(keys)) is None else Predicate(has_key) for _, keys in sides
            )
            left_form, right_form = (form_of(side.columns) for side, _ in sides)
            return JoinPairs(
                inputs,
                relation.kind,
                (None,) * len(relation.right.columns),
                (left, right),
                # Left rows without a key have no partner.
                (has_left if relation.kind in ("inner", "semi") else None, has_right),
                (retracts[0], retracts[1]),
                (left_form, right_form),
                None if relation.condition is None else Predicate(relation.condition),
            )
    raise AssertionError(f"{type(relation).__name__} is in no chain")


def _with_forms(
    keys: tuple[Scalar, ...], calls: tuple[AggregateCall, ...]
) -> tuple[tuple[Scalar, ...], tuple[AggregateCall, ...], tuple[int, ...]]:
    """The keys and aggregates of a grouping, with those that show a key; and the places of such keys."""
    forms = tuple(at for at, key in enumerate(keys) if has_forms(key.type))
    return keys, (*calls, *(AggregateCall(FORM, keys[at], keys[at].type) for at in forms)), forms


def rows_in_windows(relation: Relation) -> tuple[Relation, tuple[Scalar, ...], Windowed] | None:
    """Rows with windows as rows without them; None if they have none, or if a condition reads the windows.

    Returns:
        The rows without windows; the columns of the relation as expressions over a row, of which the two columns after
        its own are the window's start and end; and the windows.
    """
    above, inner = skip_projections(relation)
    if not isinstance(inner, Windowed):
        return None
    width = len(inner.input.columns)
    scalars: tuple[Scalar, ...] = columns_as_scalars(inner.columns)
    rows: Relation = inner.input
    for each in reversed(above):
        if isinstance(each, Filter):
            condition = replace_scalars(each.condition, scalars)
            if any(at >= width for at in columns_of(condition)):
                return None
            rows = Filter(rows, condition)
        else:
            scalars = tuple(replace_scalars(scalar, scalars) for scalar in each.scalars)
    return rows, scalars, inner


def remove_windows(
    relation: Aggregate,
) -> tuple[Relation, tuple[Scalar, ...], tuple[AggregateCall, ...], Windowed] | None:
    """Returns a grouping by windows as a grouping of rows without them, in windows of the model; None if it is none.

    Returns:
        The rows; the keys other than the window; the aggregates; and the windows.
    """
    if relation.start is None or relation.end is None:
        return None
    expand = relation.input if isinstance(relation.input, Expand) else None
    if (found := rows_in_windows(relation.input if expand is None else expand.input)) is None:
        return None
    rows, scalars, inner = found
    width = len(inner.input.columns)
    partial: tuple[Scalar, ...] = ()
    if expand is not None:
        partial = tuple(replace_scalars(key, scalars) for key in expand.keys)
        # The columns of grouping sets come after the bounds of the windows.
        scalars = (*scalars, *columns_as_scalars(expand.columns[len(expand.input.columns) :], width + 2))
    keys = tuple(
        replace_scalars(key, scalars)
        for at, key in enumerate(relation.keys)
        if at not in (relation.start, relation.end)
    )
    ends = [replace_scalars(relation.keys[at], scalars) for at in (relation.start, relation.end)]
    if [columns_of(each) for each in ends] != [{width}, {width + 1}] or not all(
        isinstance(each, Column) for each in ends
    ):
        return None
    calls = tuple(map_scalars(call, lambda each: replace_scalars(each, scalars)) for call in relation.calls)
    used = [*keys, *partial, *own_scalars(calls)]
    if any(at in (width, width + 1) for each in used for at in columns_of(each)):
        return None
    if expand is not None:
        added = expand.columns[len(expand.input.columns) :]
        rows = replace(expand, input=rows, keys=partial, columns=(*rows.columns, *added))
        moved = {at: at if at < width else at - 2 for key in keys for at in columns_of(key)}
        keys = tuple(shift_columns(key, moved) for key in keys)
    return rows, keys, calls, inner


@dataclass(frozen=True)
class RankedInWindows:
    """First rows of windows, as first rows of rows without windows.

    Attributes:
        rows: The rows.
        keys: The keys of partitions besides the window.
        scalars: The columns of a ranked row besides the window's bounds.
        bounds: The place of each bound in a ranked row, and whether it is the start (0) or the end (1).
        orders: The order of ranked rows.
        windowed: The windows.
    """

    rows: Relation
    keys: tuple[Scalar, ...]
    scalars: tuple[Scalar, ...]
    bounds: Mapping[int, int]
    orders: tuple[Order, ...]
    windowed: Windowed


def rank_in_windows(relation: Top) -> RankedInWindows | None:
    """First rows of which each partition is in one window; None if partitions have rows of several windows."""
    found = rows_in_windows(relation.input)
    if found is None or found[2].kind == "session":
        return None
    rows, scalars, windowed = found
    width = len(windowed.input.columns)
    keys = [replace_scalars(key, scalars) for key in relation.keys]
    bounds = {
        at: each.index - width
        for at, each in enumerate(scalars)
        if isinstance(each, Column) and each.index >= width
    }
    own = tuple(each for at, each in enumerate(scalars) if at not in bounds)
    others = tuple(each for each in keys if not (isinstance(each, Column) and each.index >= width))
    if len(others) == len(keys) or any(at >= width for each in (*own, *others) for at in columns_of(each)):
        return None
    # Of windows with one start, the ends differ.
    is_told_apart = any(isinstance(each, Column) and each.index == width + 1 for each in keys)
    if not is_told_apart and windowed.kind == "cumulate":
        return None
    if any(at in bounds for order in relation.orders for at in columns_of(order.scalar)):
        return None
    left = {at: new for new, at in enumerate(at for at in range(len(scalars)) if at not in bounds)}
    orders = tuple(replace(order, scalar=shift_columns(order.scalar, left)) for order in relation.orders)
    return RankedInWindows(rows, others, own, bounds, orders, windowed)


def windowfn_of(windowed: Windowed) -> WindowFn:
    """Returns the windows of the model."""
    size, step, offset = (
        micros / 1_000_000 for micros in (windowed.size_micros, windowed.step_micros, windowed.offset_micros)
    )
    match windowed.kind:
        case "tumble":
            return FixedWindows(Duration(micros=windowed.size_micros), offset % size)
        case "hop":
            return SlidingWindows(
                Duration(micros=windowed.size_micros), Duration(micros=windowed.step_micros), offset % step
            )
        case "session":
            # As in Spark's session_window, sessions that only touch are one.
            return Sessions(Duration(micros=windowed.size_micros), merge_touching=True)
    return steps.CumulatingWindows(windowed.size_micros, windowed.step_micros, windowed.offset_micros)


def trigger_of(emit: Emit) -> TriggerFn:
    """Returns the trigger that does what an EMIT clause says.

    >>> trigger_of(Emit(before=Delay(0)))
    Repeatedly(AfterArrival())
    """
    if not emit.watermark:
        assert emit.before is not None
        return Repeatedly(_delayed(emit.before))
    early = None if emit.before is None else _delayed(emit.before)
    late = None if emit.after is None else _delayed(emit.after)
    return AfterWatermark(early=early, late=late)


def _delayed(delay: Delay) -> TriggerFn:
    if not delay.micros:
        return AfterArrival()
    seconds = delay.micros / 1_000_000
    return AfterProcessingTime.aligned_to(seconds) if delay.aligned else AfterProcessingTime(seconds)


def form_of(columns: Columns) -> CanonicalRow | None:
    """Returns what brings rows of a relation into their canonical form; None if they are in it."""
    return row_canonicalizer_of(each.type for each in columns)


def hint_of(columns: Columns) -> object:
    """Returns the type hint of the rows of a relation."""
    return Tuple[tuple(hint_of_type(each.type) for each in columns)] if columns else AnyHint


def hint_of_type(kind: SqlType) -> object:
    """Returns the type hint of the values of a column."""
    if kind.name != "WINDOW":
        return to_hint(kind)
    return Optional[Period] if kind.nullable else Period


def key_hint(keys: tuple[Scalar, ...]) -> object:
    """The type hint of a key: of the only expression, or of a tuple of several; without any, of the key of all."""
    if not keys:
        return int
    hints = tuple(hint_of_type(each.type) for each in keys)
    return hints[0] if len(hints) == 1 else Tuple[hints]


def _combiner(
    calls: tuple[AggregateCall, ...], retracts: bool, has_empty: bool
) -> tuple[CombineFn, tuple[Scalar, ...], str]:
    """Returns the CombineFn of a group, its argument of a row, and the form of the results (see `GroupRows`).

    Args:
        calls: The aggregates.
        retracts: Whether values may be retracted, so that a group may become empty again.
        has_empty: Whether there is a result without rows.
    """
    arguments = tuple(argument_of(call) for call in calls)
    if not (retracts or has_empty):
        match calls:
            case [AggregateCall("count", argument, distinct=False, condition=None, fn=None, others=())] if (
                argument is None or not argument.type.nullable
            ):
                return CountCombineFn(), (), "one"
        if (expressions := expressions_of(calls)) is not None:
            return ExpressionCombineFn(expressions, describe_calls(calls)), arguments, "tuple"
    return SqlAggregates(calls, retracts), arguments, "counted"


def _is_window_end(relation: Emitted) -> bool:
    """True if rows are emitted at the end of the window by which a grouping below groups."""
    if relation.past is None:
        return False
    inner, past = origin_of(relation.input, relation.past)
    past = simplify_bound(past)
    return isinstance(inner, Aggregate) and isinstance(past, Column) and past.index == inner.end


def _not_null(scalars: tuple[Scalar, ...]) -> Scalar | None:
    """Returns the condition that no value is NULL; None if they never are."""
    parts = [functions.call("IS NOT NULL", [each]) for each in scalars if each.type.nullable]
    return functools.reduce(lambda one, other: functions.call("AND", [one, other]), parts) if parts else None


def _preserved(kind: str) -> tuple[bool, bool]:
    """Returns whether the rows of the left, and of the right side, are also in the result without a partner."""
    return kind in ("left", "full", "anti", "left_anti"), kind in ("right", "full", "anti")


def _of_left(element: Sequence[Any]) -> object:
    return element[1]


class _OnSide:
    def __init__(self, pair: tuple[int, int], form: CanonicalRow | None, forms: bool) -> None:
        self._pair = pair
        self._form = form
        self._forms = forms

    def __call__(self, row: object) -> object:
        key = row if self._form is None else self._form(row)
        return key, (*self._pair, row if self._forms else None)


class _Until:
    def __init__(self, micros: int) -> None:
        self._time = steps.time_of(micros, has_zone=True)

    def __call__(self, row: Sequence[Any]) -> bool:
        return bool(row[-1] <= self._time)


class _Matching:
    """Compares a left row and a right row: true if they fit."""

    def __init__(self, condition: Scalar) -> None:
        self._predicate = Predicate(condition)

    def __call__(self, left: Sequence[Any], right: Sequence[Any]) -> bool:
        return self._predicate((*left, *right))


class _Pair:
    """Makes one row of a key and a pair of rows, with NULL in place of a row that is missing."""

    def __init__(self, left_width: int, right_width: int) -> None:
        self._lefts = (None,) * left_width
        self._rights = (None,) * right_width

    def __call__(self, element: tuple[Any, Any]) -> object:
        _, (left, right) = element
        return (self._lefts if left is None else left) + (self._rights if right is None else right)


class _Padded:
    def __init__(self, side: int, widths: tuple[int, int]) -> None:
        self._side = side
        self._nulls = (None,) * widths[1 - side]

    def __call__(self, row: Any) -> object:
        return self._nulls + row if self._side else row + self._nulls


class _ValidRow:
    def __init__(self, has_zone: bool) -> None:
        self._has_zone = has_zone

    def __call__(self, element: tuple[Any, Any]) -> object:
        _, valid = element
        return (*valid.value, *_bounds(valid, self._has_zone))


def _bounds(valid: Any, has_zone: bool) -> tuple[Any, Any]:
    return steps.time_of(valid.start.micros, has_zone), steps.time_of(valid.end.micros, has_zone)


class _ValidPair(_Pair):
    """Makes one row of a key and a pair of rows of which the right one comes with its time."""

    def __init__(self, left_width: int, right_width: int, has_zone: bool) -> None:
        super().__init__(left_width, right_width)
        self._has_zone = has_zone

    def __call__(self, element: tuple[Any, Any]) -> object:
        _, (left, right) = element
        left = self._lefts if left is None else left
        if right is None:
            return (*left, *self._rights, None, None)
        return (*left, *right.value, *_bounds(right, self._has_zone))


class _WithEnd:
    """Makes a pair of a row's key, and of the row and what the watermark must pass, in microseconds."""

    def __init__(self, key_of: Callable[[Any], Any], past: Scalar | None) -> None:
        self._key_of = key_of
        self._past = None if past is None else Projection((past,))

    def __call__(self, row: Any) -> Any:
        micros = None
        if self._past is not None:
            [time] = self._past.function(row)
            if time is None:
                # The watermark never passes NULL.
                return
            micros = whole_micros(time)
        yield self._key_of(row), (row, micros)
