"""Functions, with the types of their arguments and the type that is inferred for what they return."""

import collections
import contextlib
import functools
import math
import operator
import types

from penstock.pvalue import Row, TaggedOutput
from penstock.typehints import with_output_types
from penstock.typehints.containers import InferredListConstraint
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.typehints import (
    KV,
    Any,
    Dict,
    Iterable,
    List,
    Optional,
    Set,
    Tuple,
    Union,
)
from tests.sdk.inference_classes import Colour, Doubler, Item, Odd, Parser, Person

CONSTANT = 5
NO_CONSTANT = None
REBOUND = 1
LISTED = [1]


def generator(x):
    yield x


def branches(kv):
    key, values = kv
    if key == "a":
        return None
    if not values:
        raise ValueError
    return key, len(values)


def appends(x):
    out = []
    out.append(x)
    return out


def walrus_appends(x):
    return (y := [1]), y.append(x)


def grows(values):
    values.append("a")
    return values


def calls_grows(x):
    return grows([1])


def loops(x):
    total = 0
    for _ in range(3):
        total = x
    return total


def collects(text):
    found = []
    for word in text.split():
        if word:
            found.append(word)
    return found


def yields_parts(kv):
    key, values = kv
    for position, value in enumerate(values):
        if value > 3:
            continue
        yield key, position, value
    yield from ((key, 0, value) for value in values)


def counts_up(x):
    total = 0
    while total < x:
        total += 1
    return total


def nests(x):
    value = x
    for _ in range(20):
        value = (value, 1)
    return value


def finally_known(x):
    try:
        result = int(x)
    except ValueError as error:
        result = str(error)
    finally:
        x = None
    return result


def opens(x):
    with contextlib.suppress(ValueError):
        return int(x)
    return "none"


def unset(flag):
    if flag == 1:
        result = 1
    elif flag == 2:
        result = 1.5
    return result


def rebinds(x):
    global REBOUND
    REBOUND = x
    return REBOUND


def reads_rebound(x):
    return REBOUND


def with_rest(x):
    first, *rest = x
    return first, rest


def matches(x):
    match x:
        case int():
            return 1
        case {"a": a}:
            return a
        case [a, *_]:
            return [a]
    return "other"


def late(x):
    def read():
        return y

    y = 1
    y = "a"
    return read()


def with_default(x, n=1):
    return x, n


def takes_many(first, *rest, last=2.0):
    return first, rest, last


def swaps_list(values):
    other = values
    other.append("a")
    return values


def handles(x):
    try:
        return int(x)
    except ValueError:
        return None


def annotated(x) -> list[int]:
    return [x]


@with_output_types(int)
def decorated(x):
    return x


def shared(x):
    def change():
        nonlocal x
        x = "changed"

    change()
    return x


def shares_two(x):
    first = x
    second = "a"
    return (lambda: (first, second))()


def recursive(x):
    return recursive(x - 1) if x > 0 else x


# A callable, the types of its arguments, arguments of these types, and the type that is inferred.
CASES = [
    (lambda x: x, [int], [1], int),
    (lambda x: (x, 1), [str], ["a"], Tuple[str, int]),
    (lambda x: ((), x, None, 1.5), [int], [1], Tuple[Tuple[()], int, type(None), float]),
    (lambda kv: kv[1], [KV[str, int]], [("a", 1)], int),
    (lambda kv: (kv[-1], kv[0]), [KV[str, int]], [("a", 1)], Tuple[int, str]),
    (lambda xs: xs[0], [List[str]], [["a"]], str),
    (lambda xs: xs[1:], [List[str]], [["a"]], List[str]),
    (lambda xs: xs[1:], [str], ["abc"], str),
    (lambda xs, i: xs[i], [List[str], Any], [["a"], slice(0, 1)], Any),
    (lambda d: d["a"], [Dict[str, int]], [{"a": 1}], int),
    (lambda row: row["a"], [Dict[str, Union[int, str]]], [{"a": 1, "b": "c"}], Any),
    (lambda row: row.get("a"), [Dict[str, Union[int, str]]], [{"a": 1, "b": "c"}], Any),
    (
        lambda row: {f: row[f] for f in "ab"},
        [Dict[str, Union[int, str]]],
        [{"a": 1, "b": "c"}],
        Dict[str, Any],
    ),
    (lambda xs: xs[0], [List[Union[int, str]]], [[1, "a"]], Any),
    (lambda x: x.anything, [object], [types.SimpleNamespace(anything=1)], Any),
    (lambda x: [x, 1], [str], ["a"], List[Union[int, str]]),
    (lambda x: [1, 2, 3], [int], [1], List[int]),
    (lambda x: [], [int], [1], List[Any]),
    (lambda x: {x, 1}, [str], ["a"], Set[Union[int, str]]),
    (lambda x: {"a": x, "b": "c"}, [int], [1], Dict[str, Union[int, str]]),
    (lambda x: {x: 1}, [str], ["a"], Dict[str, int]),
    (lambda x: {**x, 1: 1}, [Dict[str, str]], [{"a": "b"}], Dict[Union[int, str], Union[int, str]]),
    (lambda xs: (*xs, 1.5), [Tuple[int, int]], [(1, 2)], Tuple[Union[float, int], ...]),
    (lambda xs: [*xs, "a"], [List[int]], [[1]], List[Union[int, str]]),
    (lambda x: x > 3, [int], [1], bool),
    (lambda x: x > 3, [Any], [Odd], Any),
    (lambda x: x == 3, [object], [1], Any),
    (lambda x: x is None, [Any], [1], bool),
    (lambda x: 1 in x, [Any], [[1]], bool),
    (lambda x: not x, [Any], [1], bool),
    (lambda x: -x, [bool], [True], int),
    (lambda x: x + 1, [bool], [True], int),
    (lambda x: x * 2.0, [int], [1], float),
    (lambda x: x / 2, [int], [1], float),
    (lambda x: x // 2, [int], [1], int),
    (lambda x: x**2, [int], [3], int),
    (lambda x: x**-2, [int], [3], Any),
    (lambda x, y: x**y, [int, int], [3, -1], Any),
    (lambda x: x & True, [bool], [True], bool),
    (lambda x: "%s!" % x, [Any], [1], str),  # noqa: UP031
    (lambda x: x + "!", [str], ["a"], str),
    (lambda x: 2 * x, [List[int]], [[1]], List[int]),
    (lambda x: x + (1,), [KV[str, int]], [("a", 1)], Tuple[str, int, int]),
    (lambda x: x + 1, [Any], ["a"], Any),
    (lambda x: f"{x!r:>3}{x}", [Any], [1], str),
    (lambda s: s.strip().split(","), [str], ["a,b"], InferredListConstraint(str)),
    (lambda s: s.lower().encode(), [str], ["a"], bytes),
    (lambda s: ",".join(s), [Any], [["a"]], str),
    (lambda s: [word.lower() for word in s.split()], [str], ["a b"], List[str]),
    (lambda kv: (kv[0], sum(kv[1])), [KV[str, Iterable[int]]], [("a", [1])], Tuple[str, int]),
    (lambda xs: sum(xs), [List[str]], [[]], Any),
    (lambda xs: max(xs, key=lambda x: -x), [List[int]], [[1]], int),
    (lambda xs: max(xs, default=None), [List[int]], [[]], Any),
    (lambda xs: sorted(xs, reverse=True), [Iterable[int]], [[1]], InferredListConstraint(int)),
    (lambda x: round(x, 2), [float], [1.0], float),
    (lambda x: round(x), [float], [1.0], int),
    (lambda xs: tuple(set(xs)), [List[int]], [[1]], Tuple[int, ...]),
    (lambda d: d.items(), [Dict[str, int]], [{"a": 1}], Iterable[KV[str, int]]),
    (lambda d: d.get("a"), [Dict[str, int]], [{}], Optional[int]),
    (lambda x: math.sqrt(x), [int], [4], float),
    (lambda x: (int(x), str(x), len(x)), [str], ["1"], Tuple[int, str, int]),
    (lambda x: (CONSTANT, NO_CONSTANT, LISTED), [int], [1], Tuple[int, Any, Any]),
    (rebinds, [str], ["a"], Any),
    (reads_rebound, [int], [1], Any),
    (lambda x: math.pi, [int], [1], float),
    (lambda x: x if x > 0 else "n", [int], [1], Union[int, str]),
    (lambda x: x and "a", [int], [0], Union[int, str]),
    (lambda x: Row(a=x, b=str(x)), [int], [1], RowTypeConstraint.from_fields([("a", int), ("b", str)])),
    (lambda r: (r.a, r.c), [RowTypeConstraint.from_fields([("a", int)])], [Row(a=1, c=2)], KV[int, Any]),
    (lambda r: getattr(r, "a"), [RowTypeConstraint.from_fields([("a", int)])], [Row(a=1)], int),  # noqa: B009
    (lambda p: (p.name, p[1], p.count), [Person], [Person("a", 1)], Tuple[str, int, Any]),
    (lambda i: (i.price, i.tags), [Item], [Item(1.0, ["a"])], Tuple[float, List[str]]),
    (lambda x: Person(x, 1), [str], ["a"], Person),
    (lambda x: Item(price=x, tags=[]), [float], [1.0], Item),
    (lambda x: Odd(x), [int], [1], Any),
    (lambda x: Colour(x), [int], [1], Any),
    (lambda x: type(x), [int], [1], type),
    (lambda x: TaggedOutput("a", x), [int], [1], Any),
    (lambda x: (lambda: x)(), [int], [1], int),
    (lambda x: (lambda y: (x, y))(1.5), [int], [1], KV[int, float]),
    (lambda x: [(x, y) for y in "ab" if y], [int], [1], List[KV[int, str]]),
    (lambda kv: [(kv[0], v) for v in kv[1]], [KV[str, Iterable[int]]], [("a", [1])], List[KV[str, int]]),
    (lambda xs: [[y] for x in xs for y in x], [List[str]], [["ab"]], List[List[str]]),
    (lambda xs: {x: len(x) for x in xs}, [List[str]], [["ab"]], Dict[str, int]),
    (lambda xs: {x.upper() for x in xs}, [List[str]], [["ab"]], Set[str]),
    (lambda xs: (x for x in xs), [List[str]], [["ab"]], Iterable[str]),
    (lambda xs: sum(x * 2 for x in xs), [List[int]], [[1]], int),
    (lambda xs: any(x for x in xs), [List[int]], [[1]], bool),
    (lambda xs: tuple(x for x in xs), [List[int]], [[1]], Tuple[int, ...]),
    (eval("lambda xs: any(x for x in xs)", {"any": lambda xs: "some"}), [List[int]], [[1]], str),
    (lambda xs: max(*xs), [List[int]], [[1, 2]], Any),
    (lambda xs: list(enumerate(xs)), [List[str]], [["a"]], List[KV[int, str]]),
    (lambda xs: list(zip(xs, range(3))), [List[str]], [["a"]], List[KV[str, int]]),  # noqa: B905
    (lambda xs: with_default(*xs), [List[str]], [["a"]], Tuple[str, Union[int, str]]),
    (lambda x: with_default(x), [str], ["a"], Tuple[str, int]),
    (lambda x: with_default(n=x, x=1), [str], ["a"], Tuple[int, str]),
    (lambda x: with_default(**x), [Dict[str, int]], [{"x": 1}], Any),
    (lambda x: takes_many(x, 1, "a"), [str], ["a"], Tuple[str, Tuple[int, str], float]),
    (lambda x: takes_many(*x), [List[str]], [["a", "b"]], Tuple[str, Tuple[str, ...], float]),
    (lambda x: x[::-1], [Tuple[int, str]], [(1, "a")], Tuple[str, int]),
    (lambda x: x[1:], [Tuple[int, str]], [(1, "a")], Tuple[str]),
    (lambda x, n: x[n:], [Tuple[int, str], int], [(1, "a"), 1], Tuple[Union[int, str], ...]),
    (lambda x: Parser().parse(x), [str], ["a"], Tuple[int, str, str]),
    (Parser().parse, [str], ["a"], Tuple[int, str, str]),
    (Parser().uses_handler, [str], ["a"], Any),
    (lambda p: p.parse("a"), [Parser], [Parser()], Any),
    (lambda x: annotated(x), [int], [1], List[int]),
    (lambda x: decorated(x), [int], [1], int),
    (lambda *xs: xs, [int], [1], Any),
    (lambda x=1: x, [], [], Any),
    (branches, [KV[str, List[int]]], [("b", [1])], Optional[KV[str, int]]),
    (appends, [int], [1], List[Any]),
    (walrus_appends, [str], ["a"], Tuple[List[Any], Any]),
    (calls_grows, [int], [1], List[Any]),
    (loops, [int], [1], int),
    (loops, [str], ["a"], Union[int, str]),
    (handles, [str], ["a"], Optional[int]),
    (collects, [str], ["a"], List[Any]),
    (counts_up, [int], [3], int),
    (nests, [int], [3], Any),
    (finally_known, [str], ["a"], Union[int, str]),
    (opens, [str], ["a"], Union[int, str]),
    (unset, [int], [1], Union[float, int]),
    (with_rest, [List[int]], [[1, 2]], Tuple[int, List[Any]]),
    (matches, [int], [1], Any),
    (late, [int], [1], Union[int, str]),
    (swaps_list, [List[int]], [[1]], List[Any]),
    (yields_parts, [KV[str, Iterable[int]]], [("a", [1])], Iterable[Tuple[str, int, int]]),
    (shared, [int], [1], Any),
    (shares_two, [int], [1], KV[int, str]),
    (recursive, [int], [1], Any),
    (generator, [int], [1], Iterable[int]),
    (annotated, [int], [1], List[int]),
    (decorated, [int], [1], int),
    (Doubler(), [int], [1], KV[int, int]),
    (functools.partial(lambda a, b: (a, b), 1), [str], ["a"], KV[int, str]),
    (functools.partial(lambda a, b: (a, b), b=1.5), [str], ["a"], KV[str, float]),
    (operator.itemgetter(1), [KV[str, int]], [("a", 1)], int),
    (operator.itemgetter(1, 0), [KV[str, int]], [("a", 1)], KV[int, str]),
    (operator.attrgetter("name"), [Person], [Person("a", 1)], str),
    (operator.methodcaller("split", ","), [str], ["a"], InferredListConstraint(str)),
    (str.upper, [str], ["a"], str),
    ("a,b".join, [List[str]], [["a"]], Any),
    (len, [Any], ["a"], int),
    (int, [str], ["1"], int),
    (list, [Iterable[int]], [[1]], List[int]),
    (dict, [List[KV[str, int]]], [[("a", 1)]], Dict[Any, Any]),
    (Person, [str, int], ["a", 1], Person),
    (collections.Counter, [List[str]], [["a"]], collections.Counter),
    (print, [Any], [], type(None)),
]
