"""What DoFn methods ask for, how arguments are bound, and what is refused when a transform is made."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import tempfile
from types import FunctionType, MethodType

import pytest

import penstock as beam
from penstock.coders import VarIntCoder
from penstock.functions.signature import bind, read_method_signature, signature_of
from penstock.transforms import userstate
from penstock.transforms.elements.pardo import warn_of_returns
from penstock.transforms.timeutil import TimeDomain

ELEMENT, WINDOW, TIME = beam.DoFn.ElementParam, beam.DoFn.WindowParam, beam.DoFn.TimestampParam
SIDE = beam.DoFn.SideInputParam


def call(function, *args, **kwargs):
    bound = bind(read_method_signature("process", function), args, kwargs)
    return bound.args, dict(bound.kwargs)


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "positional", "named"),
    [
        (lambda x: x, (), {}, (ELEMENT,), {}),
        (lambda x, y: x, (5,), {}, (ELEMENT, 5), {}),
        (lambda x, y=1: x, (), {}, (ELEMENT,), {}),
        (lambda x, y=1: x, (5,), {}, (ELEMENT, 5), {}),
        (lambda x, w=WINDOW: x, (), {}, (ELEMENT, WINDOW), {}),
        (lambda x, w=WINDOW, y=1: x, (5,), {}, (ELEMENT, WINDOW, 5), {}),
        (lambda x, y=1, w=WINDOW: x, (), {}, (ELEMENT,), {"w": WINDOW}),
        (lambda x, y=1, w=WINDOW: x, (), {"y": 5}, (ELEMENT,), {"y": 5, "w": WINDOW}),
        (lambda y, x=ELEMENT, t=TIME: x, (5,), {}, (5, ELEMENT, TIME), {}),
        (lambda x, y=SIDE: x, (5,), {}, (ELEMENT, 5), {}),
        (lambda x, y=SIDE: x, (), {"y": 5}, (ELEMENT,), {"y": 5}),
        (lambda x, *, w=WINDOW: x, (), {}, (ELEMENT,), {"w": WINDOW}),
        (lambda *args, **kwargs: 0, (1, 2), {"b": 3, "a": 4}, (ELEMENT, 1, 2), {"a": 4, "b": 3}),
        (int, (16,), {}, (ELEMENT, 16), {}),
        (str.split, (",",), {}, (ELEMENT, ","), {}),
    ],
)
def test_arguments_go_where_beam_puts_them(function, args, kwargs, positional, named):
    assert call(function, *args, **kwargs) == (positional, named)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: beam.Map(lambda x, y: x), "is missing a required argument: 'y'"),
        (lambda: beam.Map(lambda: 1), "takes no element"),
        (lambda: beam.Map(lambda w=WINDOW: 1), "takes no element"),
        (lambda: beam.Map(lambda x: x, 1), "is given 1 argument too many"),
        (lambda: beam.Map(lambda x: x, y=1), "cannot be given an argument 'y'"),
        (lambda: beam.Map(lambda x, y: x, 1, y=2), "cannot be given an argument 'y'"),
        (lambda: beam.Map(lambda x, y=SIDE: x), "is missing a required argument: 'y'"),
        (lambda: beam.MapTuple(lambda a, b: a, 1), "is given 1 argument too many"),
        (lambda: beam.Map(3), "Map can be used only with callable objects"),
        (lambda: beam.FlatMap(beam.DoFn()), "FlatMap can be used only with callable objects"),
    ],
)
def test_functions_that_cannot_be_called_are_refused_when_the_transform_is_made(make, problem):
    with pytest.raises(TypeError, match=problem) as caught:
        make()
    what, where, hint = str(caught.value).split("\n")
    assert problem in what
    assert where.startswith("  at test_dofn_signature.py:")
    assert hint.startswith("  hint: ")


@pytest.mark.parametrize("transform", [beam.MapTuple, beam.FlatMapTuple])
@pytest.mark.parametrize(("args", "kwargs"), [((1,), {}), ((), {"side": 1})])
def test_side_inputs_of_a_function_of_tuples_need_defaults_and_the_error_says_so(transform, args, kwargs):
    with pytest.raises(
        TypeError, match=r"hint: side inputs need parameters with defaults, as in .*side=None"
    ):
        transform(lambda key, value, side: [(key, side)], *args, **kwargs)
    transform(lambda key, value, side=None: [(key, side)], *args, **kwargs)


class Full(beam.DoFn):
    COUNT = userstate.CombiningValueStateSpec("count", VarIntCoder(), sum)
    SEEN = userstate.BagStateSpec("seen", VarIntCoder())
    EXPIRY = userstate.TimerSpec("expiry", TimeDomain.WATERMARK)
    SECOND = userstate.TimerSpec("second", TimeDomain.REAL_TIME)

    def start_bundle(self, folder=beam.DoFn.BundleContextParam(tempfile.TemporaryDirectory, name="folder")):
        pass

    def process(self, element, count=beam.DoFn.StateParam(COUNT), expiry=beam.DoFn.TimerParam(EXPIRY)):
        yield element

    @userstate.on_timer(EXPIRY)
    def expired(self, seen=beam.DoFn.StateParam(SEEN), second=beam.DoFn.TimerParam(SECOND)):
        pass

    @userstate.on_timer(SECOND)
    def again(self, key=beam.DoFn.KeyParam):
        pass


def test_the_signature_tells_all_that_the_methods_ask_for():
    signature = signature_of(Full())
    assert signature.kinds == {"StateParam", "TimerParam"}
    assert signature.is_stateful
    assert not signature.is_splittable
    assert signature.state_specs == (Full.COUNT, Full.SEEN)
    assert [(spec, method.name) for spec, method in signature.timers] == [
        (Full.EXPIRY, "expired"),
        (Full.SECOND, "again"),
    ]
    assert (signature.setup, signature.finish_bundle, signature.teardown) == (None, None, None)
    assert [each.context_manager_constructor for each in signature.contexts("BundleContextParam")] == [
        tempfile.TemporaryDirectory
    ]
    assert userstate.get_dofn_specs(Full()) == ({Full.COUNT, Full.SEEN}, {Full.EXPIRY, Full.SECOND})


def test_wrappers_answer_for_the_function_or_dofn_inside():
    assert signature_of(beam.Map(lambda x, w=WINDOW: x).fn).kinds == {"WindowParam"}
    handling = beam.ParDo(Full()).with_exception_handling(allow_unsafe_userstate_in_process=True)
    pipeline = beam.Pipeline()
    pipeline | beam.Create([("a", 1)]) | handling
    dofn = pipeline.to_graph().steps[1].primitive.dofn
    assert signature_of(dofn).timers == signature_of(Full()).timers
    assert [signature_of(dofn).start_bundle, signature_of(dofn).setup] == [
        signature_of(Full()).start_bundle,
        None,
    ]


def broken(**methods):
    return type("Broken", (beam.DoFn,), {"process": lambda self, element: [element], **methods})()


LONELY = userstate.TimerSpec("lonely", TimeDomain.WATERMARK)
SAME = [userstate.BagStateSpec("same", VarIntCoder()), userstate.SetStateSpec("same", VarIntCoder())]


@pytest.mark.parametrize(
    ("methods", "error", "problem"),
    [
        (
            {"process": lambda self, x, a=WINDOW, b=WINDOW: x},
            ValueError,
            "duplicate process method parameters",
        ),
        ({"start_bundle": lambda self, w=WINDOW: None}, ValueError, "method-only parameter WindowParam"),
        (
            {"finish_bundle": lambda self, s=beam.DoFn.StateParam(SAME[0]): None},
            ValueError,
            "method-only parameter",
        ),
        (
            {"process": lambda self, x, t=beam.DoFn.TimerParam(LONELY): x},
            ValueError,
            "without an associated on_timer",
        ),
        (
            {"process": lambda self, x, a=beam.DoFn.StateParam(SAME[0]), b=beam.DoFn.StateParam(SAME[1]): x},
            ValueError,
            "duplicate process method parameters",
        ),
    ],
)
def test_wrong_dofns_are_refused_when_the_transform_is_made(methods, error, problem):
    with pytest.raises(error, match=problem):
        beam.ParDo(broken(**methods))


def test_a_dofn_without_process_can_be_asked_but_not_applied():
    assert not userstate.is_stateful_dofn(beam.DoFn())
    nothing = beam.ParDo(beam.DoFn())
    with pytest.raises(TypeError, match="DoFn defines no process method"):
        _ = beam.Pipeline() | beam.Create([1]) | nothing


class Mixed(beam.DoFn):
    def process(self, x):
        if x < 0:
            return [x]
        yield x


class SaysNone(beam.DoFn):
    def process(self, x):
        if x < 0:
            return None
        return [x]


class Stops(beam.DoFn):
    def process(self, x):
        if x < 0:
            return

        def inner():
            return None

        yield inner()


class LeavesOut(beam.DoFn):
    def process(self, x):
        print(x)


@pytest.mark.parametrize(
    ("dofn", "text"),
    [
        (Mixed(), "Using yield and return in the process method"),
        (SaysNone(), "Process method returned None"),
        (Stops(), ""),
        (LeavesOut(), ""),
    ],
)
def test_returns_that_are_hardly_meant_are_warned_of(dofn, text, caplog):
    beam.ParDo(dofn)
    assert (type(dofn).__name__ in caplog.text) == bool(text)
    assert text in caplog.text


def subclasses_of(cls):
    for each in cls.__subclasses__():
        yield each
        yield from subclasses_of(each)


def test_no_user_is_warned_of_returns_in_penstocks_own_dofns(caplog):
    for module in pkgutil.walk_packages(beam.__path__, "penstock."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    own = [each for each in subclasses_of(beam.DoFn) if each.__module__.startswith("penstock.")]
    assert len(own) > 50
    for each in own:
        warn_of_returns(object.__new__(each))
    assert caplog.text == ""


def test_a_callback_that_was_overwritten_is_refused():
    class Overwritten(Full):
        def expired(self):
            pass

    with pytest.raises(ValueError, match="is not the specified"):
        beam.ParDo(Overwritten())


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: beam.DoFn.StateParam("count"), ValueError),
        (lambda: beam.DoFn.TimerParam("expiry"), ValueError),
        (lambda: beam.DoFn.RestrictionParam("all"), ValueError),
        (lambda: beam.DoFn.WatermarkEstimatorParam("slow"), ValueError),
        (lambda: beam.DoFn.SetupContextParam(tempfile.TemporaryDirectory), None),
        (lambda: beam.DoFn.SetupContextParam(3), TypeError),
        (lambda: beam.ParDo(Full), ValueError),
        (lambda: beam.ParDo(3), TypeError),
    ],
)
def test_parameters_take_only_what_they_are_for(make, error):
    if error is None:
        manager, folder = make().create_and_enter()
        assert manager.name == folder
        manager.cleanup()
    else:
        with pytest.raises(error):
            make()


def test_parameters_and_specs_equal_their_pickled_copies():
    for each in (WINDOW, beam.DoFn.StateParam(Full.SEEN), Full.COUNT, LONELY):
        assert pickle.loads(pickle.dumps(each)) == each


def test_the_short_forms_are_plain_dofns():
    element = ("a", 2)
    assert list(beam.Map(len).fn.process(element)) == [2]
    assert list(beam.FlatMap().fn.process(element)) == ["a", 2]
    assert list(beam.Filter(all).fn.process(element)) == [element]
    assert list(beam.MapTuple(lambda a, b: a * b).fn.process(element)) == ["aa"]
    assert list(beam.FlatMapTuple(lambda a, b: a * b).fn.process(element)) == ["a", "a"]


def test_stateful_dofns_need_pairs():
    pipeline = beam.Pipeline()
    with pytest.raises(ValueError, match="must be key-value pairs, not <class 'int'>"):
        pipeline | beam.Create([1]) | beam.ParDo(Full())
    pipeline | "Pairs" >> beam.Create([("a", 1)]) | beam.ParDo(Full())
    assert [step.label for step in pipeline.to_graph().steps] == ["Create", "Pairs", "ParDo(Full)"]


def _of_all_kinds(place, /, either=3, *more, word, at=TIME, **others): ...


@pytest.mark.parametrize(
    "function", [_of_all_kinds, lambda x, *, word: x, lambda *args: args, lambda x, y=2, w=WINDOW: x]
)
@pytest.mark.parametrize("called", [lambda function: function, lambda function: MethodType(function, 1)])
def test_the_parameters_of_a_plain_function_are_those_that_python_tells(function, called):
    marked = FunctionType(function.__code__, {}, function.__name__, function.__defaults__)
    marked.__kwdefaults__ = function.__kwdefaults__
    # With an attribute it might say itself how it is called, so that Python is asked.
    marked.is_marked = True
    assert read_method_signature("f", called(function)) == read_method_signature("f", called(marked))
