"""Random pipelines give what Beam's own runner gives: the same elements, timestamps and windows.

Both sides are built by the same code, which gets the package as an argument. Legitimate disagreements, which the
table of steps leaves out or the comparison evens out:

- A FlatMap function that returns a text: Beam splits it into characters, penstock refuses it.
- The order of values in a group: neither promises one, so groups are sorted.
- Panes: Beam's runner fires a group at the end of time, penstock once per window; nothing here reads a pane.
- Microseconds: Beam's coders cut times to milliseconds where elements leave a process, penstock keeps them; what is
  compared is rounded to seconds, and no time is before 1970, where Beam's cut turns the end of one window into the
  start of the next one.
- Hot keys in sessions: Beam's fan-out puts elements into new sessions, penstock keeps those that they are in.
"""

import importlib
import json
import random
import typing

import pytest

from penstock.testing.util import assert_that, equal_to

pytest.importorskip("apache_beam")
pytestmark = pytest.mark.spark

FAN = 20
"""The first program that has a fan-out; those of `ALWAYS` have every other step."""

ALWAYS = [range(7), (*range(7, 12), FAN)]
"""The programs that run always: together they have every step."""

SOAK = [[number for number in range(40) if number not in (*range(12), FAN)][first::3] for first in range(3)]
KV = tuple[str, int]


class Sdk:
    """One of the two packages, and short names for its parts."""

    def __init__(self, name):
        self.beam = importlib.import_module(name)
        self.window = importlib.import_module(f"{name}.transforms.window")
        self.combiners = importlib.import_module(f"{name}.transforms.combiners")
        self.util = importlib.import_module(f"{name}.transforms.util")
        self.pipeline = importlib.import_module(f"{name}.testing.test_pipeline").TestPipeline
        self.values = importlib.import_module(f"{name}.pvalue")


def seconds(at):
    """The nearest whole second: all times here are seconds, but for the last instants of windows."""
    return (at.micros + 500_000) // 1_000_000


def timed(sdk, at):
    """A Map that gives elements the timestamp of a function."""
    stamped = sdk.window.TimestampedValue
    return sdk.beam.Map(lambda x: stamped(x, at(x)))


def with_window(sdk, function):
    """A Map over the element, its timestamp and the end of its window, both in seconds."""
    parameters = sdk.beam.DoFn

    def call(x, t=parameters.TimestampParam, w=parameters.WindowParam):
        return function(x, seconds(t), seconds(w.end))

    return sdk.beam.Map(call)


def sorted_group(pair):
    key, values = pair
    return key, sum((place + 1) * value for place, value in enumerate(sorted(values))) % 1009


def joined(pair):
    key, sides = pair
    return key, sum(sides["left"]) * 7 + len(sides["left"]) * 31 + sum(sides["right"]) % 1009


def split(sdk):
    tagged = sdk.values.TaggedOutput

    def call(x):
        if x % 3 == 0:
            yield tagged("three", x + 1)
        if x % 2 == 0:
            yield x

    return sdk.beam.FlatMap(call).with_outputs("three", main="rest")


def window_into(sdk, n):
    """One of the windowings; `n` chooses."""
    windowfn = [
        sdk.window.FixedWindows(10),
        sdk.window.FixedWindows(7, offset=3),
        sdk.window.SlidingWindows(10, 5),
        sdk.window.SlidingWindows(9, 6, offset=2),
        sdk.window.Sessions(4),
        sdk.window.GlobalWindows(),
    ][n % 6]
    combiner = sdk.window.TimestampCombiner
    at = [combiner.OUTPUT_AT_EOW, combiner.OUTPUT_AT_EARLIEST, combiner.OUTPUT_AT_LATEST][n // 6 % 3]
    return sdk.beam.WindowInto(windowfn, timestamp_combiner=at)


def doubled_inside(sdk, pc, n):
    return (pc, pc | "Other" >> sdk.beam.Map(lambda x: x + n), pc) | sdk.beam.Flatten()


def cogroup(sdk, pc, n):
    others = pc | "Fewer" >> sdk.beam.Filter(lambda kv: kv[1] % 2 == n % 2)
    return {"left": pc, "right": others} | sdk.beam.CoGroupByKey() | "Join" >> sdk.beam.Map(joined)


def side_list(sdk, pc, n):
    few = pc | "Few" >> sdk.beam.Filter(lambda x: x % 3 == n % 3)
    return pc | sdk.beam.Map(lambda x, all_of: x + sum(all_of) % 97, sdk.values.AsList(few))


def side_iter_of_another(sdk, pc, n):
    more = pc | "Key" >> sdk.beam.Map(lambda x: (x % 4, x)) | "Sum" >> sdk.beam.CombinePerKey(sum)
    return pc | sdk.beam.FlatMap(lambda x, s: sorted(v for k, v in s if k == x % 4), sdk.values.AsIter(more))


def side_dict(sdk, pc, n):
    lookup = pc | "Unique" >> sdk.beam.Distinct() | "Pair" >> sdk.beam.Map(lambda x: (x, x * n))
    return pc | sdk.beam.Map(lambda x, table: table.get(x - 1, -1) + x, sdk.values.AsDict(lookup))


def side_multimap(sdk, pc, n):
    pairs = pc | "Pair" >> sdk.beam.Map(lambda x: (x % 5, x))
    return pc | sdk.beam.Map(lambda x, table: len(list(table[x % 5 + n % 2])), sdk.values.AsMultiMap(pairs))


def side_total(sdk, pc, n):
    total = pc | sdk.beam.CombineGlobally(sum).as_singleton_view()
    return pc | "Add" >> sdk.beam.Map(lambda x, all_of: x + all_of % 89, total)


def partitioned(sdk, pc, n):
    small, large = pc | sdk.beam.Partition(lambda x, count: x % count, 2)
    return (large, small | "Small" >> sdk.beam.Map(lambda x: -x)) | sdk.beam.Flatten()


def tagged(sdk, pc, n):
    outputs = pc | split(sdk)
    return (outputs.rest, outputs.three) | sdk.beam.Flatten()


def per_key(name):
    def step(sdk, pc, n):
        table = {
            "sum": lambda: sdk.beam.CombinePerKey(sum),
            "max": lambda: sdk.beam.CombinePerKey(max),
            "mean": lambda: sdk.combiners.Mean.PerKey(),
            "count": lambda: sdk.combiners.Count.PerKey(),
            "top": lambda: sdk.combiners.Top.LargestPerKey(2),
            "fan": lambda: sdk.beam.CombinePerKey(sum).with_hot_key_fanout(2 + n % 3),
        }
        as_number = sdk.beam.MapTuple(lambda k, v: (k, sum(v) if isinstance(v, list) else int(v * 4)))
        return pc | table[name]() | "Number" >> as_number.with_output_types(KV)

    return step


# Name: kind of elements in, kind out, and what to apply with a number that varies it.
STEPS = {
    "Map": ("int", "int", lambda s, pc, n: pc | s.beam.Map(lambda x: x * 3 + n)),
    "FlatMap": ("int", "int", lambda s, pc, n: pc | s.beam.FlatMap(lambda x: range(x % (3 + n % 3)))),
    "Filter": ("int", "int", lambda s, pc, n: pc | s.beam.Filter(lambda x: x % (2 + n % 3) != 1)),
    "Distinct": ("int", "int", lambda s, pc, n: pc | s.beam.Distinct()),
    "Flatten": ("int", "int", doubled_inside),
    "Partition": ("int", "int", partitioned),
    "Tagged": ("int", "int", tagged),
    "AsList": ("int", "int", side_list),
    "AsIter": ("int", "int", side_iter_of_another),
    "AsDict": ("int", "int", side_dict),
    "AsMultiMap": ("int", "int", side_multimap),
    "AsSingleton": ("int", "int", side_total),
    "Reshuffle": ("int", "int", lambda s, pc, n: pc | s.beam.Reshuffle()),
    "Sum": ("int", "int", lambda s, pc, n: pc | s.beam.CombineGlobally(sum).without_defaults()),
    "Retime": ("int", "int", lambda s, pc, n: pc | timed(s, lambda x: (x * 5 + n) % 41 + 100)),
    "Late": ("int", "int", lambda s, pc, n: pc | with_window(s, lambda x, t, w: x + t % 11 + w % 13)),
    "Count": (
        "int",
        "int",
        lambda s, pc, n: (
            pc | s.combiners.Count.PerElement() | "Mix" >> s.beam.MapTuple(lambda x, c: x * 10 + c)
        ),
    ),
    "Window": ("int", "int", lambda s, pc, n: pc | window_into(s, n)),
    "Rewindow": ("kv", "kv", lambda s, pc, n: pc | window_into(s, n)),
    "Key": (
        "int",
        "kv",
        lambda s, pc, n: pc | s.beam.Map(lambda x: (f"k{x % (2 + n % 3)}", x)).with_output_types(KV),
    ),
    "WithKeys": (
        "int",
        "kv",
        lambda s, pc, n: pc | s.util.WithKeys(lambda x: "ab"[x % 2]).with_output_types(KV),
    ),
    "Group": ("kv", "kv", lambda s, pc, n: pc | s.beam.GroupByKey() | "Sorted" >> s.beam.Map(sorted_group)),
    "CoGroup": ("kv", "kv", cogroup),
    "SumPerKey": ("kv", "kv", per_key("sum")),
    "MaxPerKey": ("kv", "kv", per_key("max")),
    "MeanPerKey": ("kv", "kv", per_key("mean")),
    "CountPerKey": ("kv", "kv", per_key("count")),
    "TopPerKey": ("kv", "kv", per_key("top")),
    "FanPerKey": ("kv", "kv", per_key("fan")),
    "Values": ("kv", "int", lambda s, pc, n: pc | s.beam.Values()),
}


def program(number):
    """The steps of a program, by name with their numbers, and its input; the same on every run."""
    choose = random.Random(f"penstock {number}")
    steps, kind = [("Window", choose.randrange(18))] * choose.randrange(2), "int"
    for _ in range(choose.randint(3, 8)):
        weights = {name: 3 if "ind" in name else 2 for name, (takes, _, _) in STEPS.items() if takes == kind}
        # Beam refuses sessions as side inputs; for fan-outs see above.
        in_sessions = [n for name, n in steps if "indow" in name][-1:] in ([4], [10], [16])
        names = [name for name in weights if not (in_sessions and name.startswith(("As", "Fan")))]
        name = choose.choices(names, [weights[name] for name in names])[0]
        steps.append((name, choose.randrange(18)))
        kind = STEPS[name][1]
    values = [
        (choose.randrange(40), choose.randrange(100, 180))
        for _ in range(choose.choice([0, 1, 12, 25, 40, 40]))
    ]
    return steps, values


def build(sdk, pipeline, number):
    """A program's PCollection of (element, timestamp, window) as texts."""
    steps, values = program(number)
    stamped = sdk.window.TimestampedValue
    pc = pipeline | f"{number} values" >> sdk.beam.Create(values)
    pc |= f"{number} times" >> sdk.beam.MapTuple(lambda x, at: stamped(x, at)).with_output_types(int)
    for place, (name, n) in enumerate(steps):
        part = STEPS[name][2]
        pc |= (
            f"{number} {place} {name}" >> sdk.beam.ptransform_fn(lambda p, part=part, n=n: part(sdk, p, n))()
        )
    return pc | f"{number} seen" >> reified(sdk)


def reified(sdk):
    parameters = sdk.beam.DoFn

    def call(x, t=parameters.TimestampParam, w=parameters.WindowParam):
        return json.dumps([x, *(seconds(at) for at in (t, w.start, w.end))])

    return sdk.beam.Map(call).with_output_types(str)


def append(line, path, number):
    with open(path, "a") as out:
        out.write(json.dumps([number, line]) + "\n")


def results_of_beam(numbers, path):
    """What each program gives on Beam's own runner."""
    sdk = Sdk("apache_beam")
    with sdk.pipeline() as p:
        for number in numbers:
            _ = build(sdk, p, number) | f"{number} out" >> sdk.beam.Map(append, str(path), number)
    found = {number: [] for number in numbers}
    if path.exists():
        for line in path.read_text().splitlines():
            number, seen = json.loads(line)
            found[number].append(seen)
    return found


@pytest.mark.parametrize(
    "numbers", [*ALWAYS, *(pytest.param(numbers, marks=pytest.mark.soak) for numbers in SOAK)]
)
@pytest.mark.filterwarnings("ignore")
def test_random_programs_give_what_beam_gives(numbers, tmp_path):
    expected = results_of_beam(numbers, tmp_path / "seen")
    assert sum(map(len, expected.values())) > 60
    sdk = Sdk("penstock")
    with sdk.pipeline() as p:
        for number in numbers:
            label = f"{number}: {program(number)[0]}"
            assert_that(build(sdk, p, number), equal_to(expected[number]), label=label)


def test_the_programs_use_every_step_of_the_table():
    used = {name for numbers in ALWAYS for number in numbers for name, _ in program(number)[0]}
    assert used == set(STEPS)
    assert typing.get_args(KV) == (str, int)
