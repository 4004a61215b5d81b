"""The Pipeline: applies transforms, and runs them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

from penstock import graph
from penstock.base.display import HasDisplayData
from penstock.base.engine import create_runner
from penstock.construction import pvalue
from penstock.construction.applicable import Expands, ResultT
from penstock.construction.applied import (
    AppliedPTransform,
    PipelineVisitor,
    current_annotations,
    transform_annotations,
)
from penstock.construction.captured import refuse_captured
from penstock.construction.graph_of import graph_of, type_checks
from penstock.construction.ptransform import (
    NamedPTransform,
    PTransform,
    get_named_nested_pvalues,
    inputs_of,
    set_label,
)
from penstock.construction.unrun_pipelines import note
from penstock.diagrams.graphs import html_of
from penstock.diagrams.steps import steps_of
from penstock.error import noun_for, refusal
from penstock.functions.resources import resource_hints_from_options
from penstock.options.base import with_values
from penstock.options.checks import check_arguments, copy_options
from penstock.options.pipeline_options import PipelineOptions, SparkOptions, StandardOptions, TypeOptions
from penstock.options.value_provider import RuntimeValueProvider
from penstock.tracebacks import add_meant_keyword, shortens_tracebacks, show_all_lines
from penstock.typehints import typehints
from penstock.typehints.decorators import TypeCheckError
from penstock.typehints.io_hints import WithoutElements
from penstock.utils.identifiers import identifier
from penstock.where import Location, find_caller


def check_inputs(pipeline: Pipeline, node: AppliedPTransform) -> None:
    """Refuses inputs that are not pipeline values, that another pipeline has made, or that a ParDo cannot take."""
    sides = tuple(side.pvalue for side in node.side_inputs)
    for value in (*node.inputs, *sides):
        if not isinstance(value, pvalue.PValue):
            what = f"{node.transform} is applied to {noun_for(value)}, which is not a PCollection"
            raise refusal(TypeError, what, where=node.where, hint="make a PCollection of it with Create")
        if value.pipeline is not pipeline:
            what = "Mixing values in different pipelines is not allowed"
            raise refusal(ValueError, what, where=node.where, hint="make all inputs in one pipeline")
        needs = node.transform is not None and node.transform.needs_pcollection
        if needs and not isinstance(value, pvalue.PCollection):
            given = "PBegin/Pipeline" if isinstance(value, pvalue.PBegin) else type(value).__name__
            what = f"Transform {node.full_label!r} expects a PCollection as input. Got a {given} instead."
            hint = "apply it to the output of a transform such as Create or a read"
            raise TypeCheckError(what, where=node.where, hint=hint)


_LOGGER = logging.getLogger(__name__)


class Pipeline(HasDisplayData, WithoutElements):
    """A graph of transforms over PCollections, which a runner runs (Beam's ``Pipeline``).

    Used as a context manager, it runs at the end of the block, and waits unless the option ``no_wait_until_finish`` is
    set. Then the attribute `result` holds the result.

    Args:
        runner: A runner or its name; by default the option ``runner``, whose default is the Spark runner.
        options: Options; the pipeline works on a copy. ``PipelineOptions()`` reads the program's command line; a
            pipeline without `options` and `argv` does not read it, and a warning names the flags that are not read.
        argv: Command-line arguments for options, if `options` is None.
        display_data: Display data of the pipeline, for tools.
        runner_arguments: Further options by name, such as ``mode="batch"``, or ``spark=session`` to use an existing
            session.

    >>> pipeline = Pipeline()
    >>> pipeline.visit(PipelineVisitor())
    """

    def __init__(
        self,
        runner: object = None,
        options: PipelineOptions | None = None,
        argv: list[str] | None = None,
        display_data: dict[str, Any] | None = None,
        **runner_arguments: Any,
    ) -> None:
        own = copy_options(options, argv, runner_arguments)
        self.runner_arguments = check_arguments(runner_arguments)
        self._options = with_values(own, runner_arguments)
        self._standard_options = self._options.view_as(StandardOptions)
        self._type_options = self._options.view_as(TypeOptions)
        if self._options.view_as(SparkOptions).full_trace:
            show_all_lines()
        if not (runner is None or isinstance(runner, str) or hasattr(runner, "run_pipeline")):
            what = f"Runner {runner!r} is not a PipelineRunner object or the name of a runner"
            raise refusal(TypeError, what, hint="leave it out")
        self._runner = runner
        self._stack = [AppliedPTransform(None, None, "", None)]
        self._stack[0].resource_hints = resource_hints_from_options(self._options)
        self._labels: dict[str, Location | None] = {}
        self._display_data = display_data or {}
        self.error_handlers: list[Any] = []
        self._unrun = note()
        self.result: Any = None

    @property
    def applied_labels(self) -> set[str]:
        """The full labels of all applied transforms (Beam's name); a copy."""
        return set(self._labels)

    @property
    def transforms_stack(self) -> list[AppliedPTransform]:
        """The transforms that are being applied now, from the root of the tree inwards (Beam's name); a copy."""
        return list(self._stack)

    @property
    def options(self) -> PipelineOptions:
        """The pipeline's own copy of its options."""
        return self._options

    @property
    def runner(self) -> Any:
        """The runner; the first use turns a name into a runner.

        Only this property, `run` and `explain` use a runner.
        """
        if self._runner is None or isinstance(self._runner, str):
            self._runner = create_runner(
                self._runner or self._standard_options.runner or StandardOptions.DEFAULT_RUNNER
            )
        return self._runner

    @property
    def allow_unsafe_triggers(self) -> bool:
        """True if grouping with a trigger that may lose data is allowed."""
        return bool(self._type_options.allow_unsafe_triggers)

    def display_data(self) -> dict[str, Any]:
        """Returns the display data that was passed to the constructor."""
        return self._display_data

    @shortens_tracebacks
    def run(self, test_runner_api: Any = "AUTO") -> Any:
        """Runs the pipeline, and returns a `PipelineResult`; the pipeline may still be running.

        Beam's argument `test_runner_api` has no effect here.
        """
        self._unrun.forget()
        for handler in self.error_handlers:
            handler.verify_closed()
        # Unknown options have had their warning.
        options = self._options.get_all_options(retain_unknown_options=True)
        values = {name: each for name, each in options.items() if isinstance(each, str)}
        with RuntimeValueProvider.at_run_time(values):
            return self.runner.run_pipeline(self, self._options)

    @shortens_tracebacks
    def explain(self) -> str:
        """Returns what the runner would do, as text, without running anything."""
        parts = [f"# {label}\n{text}" for label, text in self.root_transform().explanations()]
        return "\n\n".join([*parts, str(self.runner.explain(self, self._options))])

    def to_graph(self) -> graph.Graph:
        """Returns the pipeline as the compiler's input: steps over primitives, and edges."""
        return graph_of(self.root_transform(), type_checks(self._options))

    def facts(self) -> dict[str, tuple[str, ...]]:
        """Returns the display data of each transform as lines, by label; drawings show them (penstock's own)."""
        return dict(self.root_transform().facts())

    def ready_made(self) -> dict[str, str]:
        """The outermost transforms that no user wrote: the default label of each, by label (penstock's own)."""
        return dict(self.root_transform().ready_made())

    def _repr_html_(self) -> str:
        """Draws the steps for a notebook, with composites folded."""
        return html_of(steps_of(self.to_graph()), facts=self.facts())

    def __enter__(self) -> Pipeline:
        return self

    @shortens_tracebacks
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._unrun.forget()
            if error is not None:
                add_meant_keyword(error)
            return
        self.result = self.run()
        if self._standard_options.no_wait_until_finish:
            # Beam writes the same words to the root logger.
            logging.info(
                "Job execution continues without waiting for completion. "
                'Use "wait_until_finish" in PipelineResult to block until finished.'
            )
        else:
            self.result.wait_until_finish()

    def __reduce__(self) -> tuple[Any, ...]:
        # Closures capture pipelines by accident, and with them every transform; workers get a placeholder.
        return str, ("a pipeline that was pickled",)

    @contextlib.contextmanager
    def draft(self) -> Iterator[None]:
        """Forgets the transforms applied in the block when it ends: they only answer a question about the pipeline."""
        parts, labels, steps = list(self._stack[-1].parts), dict(self._labels), self._unrun.steps
        try:
            yield
        finally:
            self._stack[-1].parts[:] = parts
            self._labels, self._unrun.steps = labels, steps

    def visit(self, visitor: PipelineVisitor) -> None:
        """Calls a visitor for every node and value, in the order of application."""
        self.root_transform().visit(visitor, self, set())

    @shortens_tracebacks
    def __or__(self, transform: Expands[Any, ResultT]) -> ResultT:
        result: ResultT = self.apply(transform, pvalue.PBegin(self))
        return result

    @shortens_tracebacks
    def apply(self, transform: object, pvalueish: object = None, label: str | None = None) -> Any:
        """Applies a PTransform under a label (what ``pvalueish | label >> transform`` does)."""
        if isinstance(pvalueish, Pipeline):
            pvalueish = pvalue.PBegin(pvalueish)
        if isinstance(transform, NamedPTransform):
            return self.apply(transform.transform, pvalueish, label or transform.label)
        if not isinstance(transform, PTransform):
            what = f"Expected a PTransform object, got {transform!r}"
            hint = "call the class to make a transform; wrap a function in Map or FlatMap"
            if isinstance(transform, str):
                hint = f"write a label before its transform, with >>: {transform!a} >> Map(function)"
            raise refusal(TypeError, what, hint=hint)
        if label is None:
            return self._apply(transform, pvalueish)
        with set_label(transform, label):
            return self._apply(transform, pvalueish)

    def _apply(self, transform: Any, pvalueish: object) -> object:
        if pvalueish is None:
            what = f"Transform {transform.label!r} was applied to the output of an object of type None"
            hint = "return the output from the expand method of the transform before it"
            raise refusal(TypeCheckError, what, hint=hint)
        transform.see_options(self._options)
        pvalueish, inputs = inputs_of(transform, pvalueish)
        location = find_caller()
        labels_before = len(self._labels)
        parent = self._stack[-1]
        full_label = self._new_label(transform, location)
        if not isinstance(inputs, Mapping):
            inputs = {str(index): value for index, value in enumerate(inputs)}
        node = AppliedPTransform(parent, transform, full_label, inputs, None, current_annotations(), location)
        parent.add_part(node)
        self._unrun.steps += len(self._stack) == 1
        self._stack.append(node)
        try:
            check_inputs(self, node)
            result = self._expand(node, pvalueish)
            refuse_captured(node)
            return result
        except BaseException:
            # Remove everything that was applied inside, with its labels, so that the user can try again.
            parent.parts.remove(node)
            for name in list(self._labels)[labels_before:]:
                del self._labels[name]
            self._unrun.forget()
            raise
        finally:
            self._stack.pop()

    def _new_label(self, transform: Any, location: Location | None) -> str:
        around = self._stack[-1].full_label
        full_label = f"{around}/{transform.label}" if around else str(transform.label)
        _check_is_text(full_label)
        if full_label in self._labels and self._standard_options.auto_unique_labels:
            full_label = f"{full_label}_{identifier()[:6]}"
        if full_label in self._labels:
            what = f'A transform with label "{full_label}" already exists in the pipeline'
            where = f"at {location}; the first one is at {self._labels[full_label]}"
            hint = 'give one of them a label: pvalue | "label" >> transform, or set the option auto_unique_labels'
            raise refusal(RuntimeError, what, where=where, hint=hint)
        self._labels[full_label] = location
        return full_label

    def _expand(self, node: AppliedPTransform, pvalueish: object) -> object:
        transform = node.transform
        assert transform is not None
        checks = self._type_options.pipeline_type_check
        if checks:
            transform.type_check_inputs(pvalueish)
        result = transform.expand(pvalueish)
        if checks:
            transform.type_check_outputs(result)
        for tag, value in get_named_nested_pvalues(result):
            if isinstance(value, pvalue.DoOutputsTuple):
                self._finish_outputs(node, value)
            else:
                self._finish_output(node, value, tag)
        if (
            self._type_options.type_check_strictness == "ALL_REQUIRED"
            and not transform.get_type_hints().output_types
        ):
            raise TypeCheckError(
                "Pipeline type checking is enabled, however no output type-hint was found for the PTransform "
                f"{type(transform).__name__}({node.full_label})",
                where=node.where,
                hint="call with_output_types on it, or leave out type_check_strictness=ALL_REQUIRED",
            )
        return result

    def _finish_outputs(self, node: AppliedPTransform, outputs: pvalue.DoOutputsTuple) -> None:
        if outputs.producer is None:
            outputs.producer = node
            for tag in (None, *pvalue.declared_tags(outputs)):
                self._finish_output(node, outputs[tag], tag)
        else:
            for passed_tag, value in pvalue.pass_on_outputs(outputs).items():
                node.outputs.setdefault(passed_tag, value)

    def _finish_output(self, node: AppliedPTransform, value: pvalue.PValue, tag: Any) -> None:
        """Records a value as an output, with its producer, type and windowing."""
        # The producer is the innermost transform; the composites around it only pass the value on.
        if value.producer is None:
            value.producer = node
            if isinstance(value, pvalue.PCollection):
                # Computed now, the windowing of a long chain needs no deep recursion later.
                _ = value.windowing
        self._infer_type(node, value)
        base, count = tag, 0
        while tag in node.outputs and node.outputs[tag] is not value:
            count += 1
            tag = f"{base}_{count}"
        node.outputs[tag] = value

    def _infer_type(self, node: AppliedPTransform, value: pvalue.PValue) -> None:
        """Gives a PCollection of unknown element type the type that the transform declares or infers."""
        if not self._type_options.pipeline_type_check or not isinstance(value, pvalue.PCollection):
            return
        if value.element_type is not None and value.element_type != typehints.Any:
            return
        transform = node.transform
        assert transform is not None
        given = [getattr(each, "element_type", None) for each in node.inputs]
        input_type = (
            given[0] if len(given) == 1 else typehints.Union[tuple(each or typehints.Any for each in given)]
        )
        hints = transform.get_type_hints()
        if value.tag:
            declared = hints.tagged_output_types().get(value.tag, typehints.Any)
        else:
            declared = hints.simple_output_type(transform.label)
        if declared and hints.input_types and hints.input_types[0]:
            bound = typehints.match_type_variables(hints.input_types[0][0], input_type)
            inferred = typehints.bind_type_variables(declared, bound)
        else:
            inferred = declared or transform.infer_output_type(input_type)
        value.element_type = typehints.bind_type_variables(inferred, {"*": typehints.Any})

    @contextlib.contextmanager
    def transform_annotations(self, **annotations: object) -> Iterator[None]:
        """Annotates the transforms applied in the block; see `penstock.pipeline.transform_annotations`."""
        with transform_annotations(**annotations):
            yield

    def root_transform(self) -> AppliedPTransform:
        """Returns the root of the tree, for runners and for drawings of the pipeline."""
        self._unrun.forget()
        return self._stack[0]

    def current_transform(self) -> AppliedPTransform:
        """Returns the record of the transform that is being applied now; the root at the top of the program."""
        return self._stack[-1]

    def register_error_handler(self, handler: object) -> None:
        """Adds an error handler, which must be closed before the pipeline runs."""
        self.error_handlers.append(handler)


def _check_is_text(label: str) -> None:
    """Refuses a label that no file and no page can hold: half of a surrogate pair is not a character."""
    try:
        label.encode()
    except UnicodeEncodeError as error:
        what = f"the label {label!a} is not text: {error.object[error.start]!a} is half of a character"
        raise refusal(
            ValueError, what, hint="leave it out, or decode the name with the encoding that it has"
        ) from None
