"""Each ready-made CombineFn, run in plain Python: it obeys the laws, and agrees with Beam's."""

import importlib
import math
import pickle
import random
import warnings

import pytest

from penstock.coders import Base64PickleCoder, VarIntCoder
from penstock.transforms import combiners, stats
from penstock.utils.timestamp import Timestamp


def beam(module):
    """Beam's module, the oracle; the test is skipped where Beam is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(f"apache_beam.{module}")


def ints(rng, count):
    return [rng.randrange(-50, 50) for _ in range(count)]


def texts(rng, count):
    return ["".join(rng.choices("abc", k=rng.randrange(5))) for _ in range(count)]


def pairs(rng, count):
    return [(rng.randrange(30), rng.randrange(30)) for _ in range(count)]


def distinct_pairs(rng, count):
    return [(key, rng.randrange(9)) for key in rng.sample(range(10 * count + 1), count)]


def timed(rng, count):
    return [(f"v{micros}", Timestamp(micros=micros)) for micros in rng.sample(range(10 * count + 1), count)]


def batches(rng, count):
    return [ints(rng, rng.randrange(4)) for _ in range(count)]


# A CombineFn, a generator of inputs, and a view of the output in which equal results are equal.
FNS = {
    "count": (combiners.CountCombineFn, texts, None),
    "mean": (combiners.MeanCombineFn, ints, repr),
    "top": (lambda: combiners.TopCombineFn(5), ints, None),
    "top, key": (lambda: combiners.TopCombineFn(5, key=abs), ints, lambda top: [abs(one) for one in top]),
    "top, reverse": (lambda: combiners.TopCombineFn(3, reverse=True), texts, None),
    "top, key, reverse": (
        lambda: combiners.TopCombineFn(4, len, True),
        texts,
        lambda top: [len(one) for one in top],
    ),
    "top of none": (lambda: combiners.TopCombineFn(0), ints, None),
    "top of many": (lambda: combiners.TopCombineFn(10_000), ints, None),
    "largest": (lambda: combiners.Largest(2), ints, None),
    "smallest": (lambda: combiners.Smallest(2), ints, None),
    "sample of all": (lambda: combiners.SampleCombineFn(10_000), ints, sorted),
    "to list": (combiners.ToListCombineFn, ints, sorted),
    "concatenated": (combiners.ConcatListCombineFn, batches, sorted),
    "to set": (combiners.ToSetCombineFn, ints, None),
    "to dict": (combiners.ToDictCombineFn, distinct_pairs, None),
    "latest": (combiners.LatestCombineFn, timed, None),
    "tuple": (lambda: combiners.TupleCombineFn(sum, combiners.TopCombineFn(2)), pairs, None),
    "common input": (
        lambda: combiners.TupleCombineFn(min, max, merge_accumulators_batch_size=1).with_common_input(),
        ints,
        None,
    ),
    "unique": (lambda: stats.ApproximateUniqueCombineFn(16, VarIntCoder()), ints, None),
    "quantiles": (lambda: stats.ApproximateQuantilesCombineFn.create(4), ints, None),
    "quantiles, reverse": (
        lambda: stats.ApproximateQuantilesCombineFn.create(5, key=abs, reverse=True),
        ints,
        None,
    ),
    "quantiles, batched": (
        lambda: stats.ApproximateQuantilesCombineFn.create(5, input_batched=True),
        batches,
        None,
    ),
    "quantiles, weighted": (
        lambda: stats.ApproximateQuantilesCombineFn.create(5, weighted=True),
        pairs,
        None,
    ),
}
NOT_EMPTY = {"tuple", "common input"}


def split(rng, elements, parts):
    cuts = sorted(rng.randrange(len(elements) + 1) for _ in range(parts - 1))
    return [elements[start:end] for start, end in zip([0, *cuts], [*cuts, len(elements)], strict=True)]


def accumulate(fn, rng, elements):
    """One accumulator, by single elements, by batches, or by a lazy batch."""
    accumulator = fn.create_accumulator()
    match rng.randrange(3):
        case 0:
            for element in elements:
                accumulator = fn.add_input(accumulator, element)
        case 1:
            for part in split(rng, elements, 3):
                accumulator = fn.add_inputs(accumulator, part)
        case 2:
            accumulator = fn.add_inputs(accumulator, iter(elements))
    accumulator = fn.compact(accumulator) if rng.random() < 0.5 else accumulator
    return pickle.loads(pickle.dumps(accumulator)) if rng.random() < 0.5 else accumulator


def merge_somehow(fn, rng, accumulators):
    """One accumulator, merged in a random tree."""
    while len(accumulators) > 1:
        size = rng.randrange(2, len(accumulators) + 1)
        start = rng.randrange(len(accumulators) - size + 1)
        merged = fn.merge_accumulators(iter(accumulators[start : start + size]))
        accumulators = [*accumulators[:start], merged, *accumulators[start + size :]]
    return accumulators[0]


@pytest.mark.parametrize("name", FNS)
@pytest.mark.parametrize("seed", range(20))
def test_any_split_into_accumulators_and_any_tree_of_merges_gives_the_result_of_one_pass(name, seed):
    make, generate, view = FNS[name]
    view = view or (lambda output: output)
    rng = random.Random(f"{name} {seed}")
    elements = generate(rng, rng.choice([1, 2, 20, 300]) if name in NOT_EMPTY else rng.choice([0, 1, 5, 300]))
    fn = make()
    one_pass = fn.create_accumulator()
    for element in elements:
        one_pass = fn.add_input(one_pass, element)
    parts = split(rng, elements, 1 if not elements or (name in NOT_EMPTY and len(elements) < 20) else 5)
    parts = [part for part in parts if part or name not in NOT_EMPTY]
    accumulators = [accumulate(fn, rng, part) for part in parts]
    assert view(fn.extract_output(merge_somehow(fn, rng, accumulators))) == view(fn.extract_output(one_pass))


@pytest.mark.parametrize("name", FNS)
def test_merging_leaves_its_inputs_and_extracting_leaves_the_accumulator_usable(name):
    make, generate, _ = FNS[name]
    fn = make()
    rng = random.Random(name)
    elements = generate(rng, 30)
    accumulators = [fn.add_inputs(fn.create_accumulator(), part) for part in (elements[:10], elements[10:])]
    before = [pickle.dumps(accumulator) for accumulator in accumulators]
    merged = fn.merge_accumulators(accumulators)
    first = fn.extract_output(merged)
    kept = pickle.dumps(first)
    assert [pickle.dumps(accumulator) for accumulator in accumulators] == before
    fn.add_inputs(merged, elements)
    assert pickle.dumps(first) == kept


def beams_of(name):
    theirs, their_stats = beam("transforms.combiners"), beam("transforms.stats")
    quantiles = their_stats.ApproximateQuantilesCombineFn.create
    return {
        "count": theirs.CountCombineFn,
        "mean": theirs.MeanCombineFn,
        "top": lambda: theirs.TopCombineFn(5),
        "top, key": lambda: theirs.TopCombineFn(5, key=abs),
        "top, reverse": lambda: theirs.TopCombineFn(3, reverse=True),
        "top, key, reverse": lambda: theirs.TopCombineFn(4, len, True),
        "top of none": lambda: theirs.TopCombineFn(0),
        "top of many": lambda: theirs.TopCombineFn(10_000),
        "largest": lambda: theirs.Largest(2),
        "smallest": lambda: theirs.Smallest(2),
        "sample of all": lambda: theirs.SampleCombineFn(10_000),
        "to list": theirs.ToListCombineFn,
        "concatenated": theirs.ConcatListCombineFn,
        "to set": theirs.ToSetCombineFn,
        "to dict": theirs.ToDictCombineFn,
        "tuple": lambda: theirs.TupleCombineFn(sum, theirs.TopCombineFn(2)),
        "common input": lambda: theirs.TupleCombineFn(min, max).with_common_input(),
        "quantiles": lambda: quantiles(4),
        "quantiles, weighted": lambda: quantiles(5, weighted=True),
    }[name]()


@pytest.mark.parametrize(
    "name",
    [name for name in FNS if name not in {"latest", "unique", "quantiles, reverse", "quantiles, batched"}],
)
@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_results_are_those_of_beams_combinefn(name, size):
    make, generate, view = FNS[name]
    view = view or (lambda output: output)
    elements = generate(random.Random(f"{name} {size}"), size)
    theirs = beams_of(name)
    accumulator = theirs.create_accumulator()
    for element in elements:
        accumulator = theirs.add_input(accumulator, element)
    assert view(make().apply(elements)) == view(theirs.extract_output(accumulator))


def test_top_keeps_little_more_than_n_candidates():
    fn = combiners.TopCombineFn(10)
    accumulator = fn.create_accumulator()
    longest = 0
    for number in range(10_000):
        accumulator = fn.add_input(accumulator, number)
        longest = max(longest, len(accumulator))
    assert longest <= 2 * 10 + 16
    assert len(fn.add_inputs([], iter(range(100_000)))) <= 2 * 10 + 16


def test_top_compares_elements_that_have_nothing_but_less_than():
    class Ranked:
        def __init__(self, rank):
            self.rank = rank

        def __lt__(self, other):
            return self.rank < other.rank

    elements = [Ranked(rank) for rank in range(100)]
    random.Random(1).shuffle(elements)
    for n in (1, 3, 200):
        expected = list(range(100))[::-1][:n]
        assert [one.rank for one in combiners.TopCombineFn(n).apply(elements)] == expected


def test_every_element_is_as_likely_to_be_sampled():
    random.seed(11)
    fn = combiners.SampleCombineFn(3)
    hits = dict.fromkeys(range(10), 0)
    for _ in range(3000):
        parts = [fn.add_inputs(fn.create_accumulator(), part) for part in (range(8), range(8, 10))]
        for element in fn.extract_output(fn.merge_accumulators(parts)):
            hits[element] += 1
    # 900 hits each are expected, with a standard deviation of about 25.
    assert sum(hits.values()) == 9000
    assert all(800 < count < 1000 for count in hits.values())


def test_any_sample_takes_as_many_as_wished_and_looks_no_further():
    fn = importlib.import_module("penstock.transforms.combining.ready_combiners").AnySampleCombineFn(3)
    rest = iter(range(100))
    accumulator = fn.add_inputs(fn.create_accumulator(), rest)
    assert (accumulator, next(rest)) == ([0, 1, 2], 3)
    assert len(fn.extract_output(fn.merge_accumulators([[1, 2], [3], [4, 5]]))) == 3
    with pytest.raises(ValueError, match="Expected non-negative n, received -1"):
        combiners.Sample.Any(-1)


def test_the_mean_of_nothing_is_nan_and_the_latest_of_nothing_is_none():
    assert math.isnan(combiners.MeanCombineFn().apply([]))
    assert combiners.LatestCombineFn().apply([]) is None


def test_tuple_combinefns_set_up_in_order_and_tear_down_in_reverse_order():
    calls = []

    class Noting(combiners.CountCombineFn):
        def __init__(self, name):
            self.name = name

        def setup(self):
            calls.append(f"setup {self.name}")

        def teardown(self):
            calls.append(f"teardown {self.name}")

    fn = combiners.TupleCombineFn(Noting("a"), Noting("b"))
    fn.setup()
    fn.teardown()
    assert calls == ["setup a", "setup b", "teardown b", "teardown a"]


@pytest.mark.parametrize("count", [10, 1000, 50_000])
@pytest.mark.parametrize("error", [0.5, 0.1, 0.02])
def test_the_estimate_of_distinct_elements_is_within_its_error_and_exact_for_few(count, error):
    size = stats.ApproximateUnique.parse_input_params(error=error)
    estimate = stats.ApproximateUniqueCombineFn(size, VarIntCoder()).apply(
        [*range(count), *range(0, count, 3)]
    )
    assert estimate == count if count < size else abs(estimate - count) <= error * count


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Either size or error should be set"),
        ({"size": 20, "error": 0.1}, "Either size or error should be set"),
        ({"size": 15}, "needs a size >= 16"),
        ({"size": 20.5}, "needs a size >= 16"),
        ({"error": 0.6}, "between 0.01 and 0.50"),
        ({"error": 0.001}, "between 0.01 and 0.50"),
    ],
)
def test_approximate_unique_refuses_arguments_as_beam_does(arguments, message):
    for transform in (stats.ApproximateUnique.Globally, stats.ApproximateUnique.PerKey):
        with pytest.raises(ValueError, match=message):
            transform(**arguments)
        with pytest.raises(ValueError, match=message):
            getattr(beam("transforms.stats").ApproximateUnique, transform.__name__)(**arguments)


def orders(count):
    shuffled = list(range(count))
    random.Random(5).shuffle(shuffled)
    return {"ascending": list(range(count)), "descending": list(range(count))[::-1], "shuffled": shuffled}


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
@pytest.mark.parametrize("parts", [1, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_quantiles_are_within_the_wished_error_of_the_exact_ranks(order, parts, weighted):
    count, epsilon, quantiles = 100_000, 0.01, 11
    fn = stats.ApproximateQuantilesCombineFn.create(
        quantiles, epsilon, max_num_elements=count, weighted=weighted
    )
    weight_of = (
        (lambda value: 1000.0 if value % 5000 == 7 else value % 3 + 0.5) if weighted else (lambda value: 1)
    )
    elements = [(value, weight_of(value)) if weighted else value for value in orders(count)[order]]
    accumulators = [fn.add_inputs(fn.create_accumulator(), elements[part::parts]) for part in range(parts)]
    output = fn.extract_output(fn.merge_accumulators(accumulators))
    assert all(sum(map(len, accumulator.levels)) < count / 8 for accumulator in accumulators)
    weights = [weight_of(value) for value in range(count)]
    total = sum(weights)
    assert (output[0], output[-1], len(output)) == (0, count - 1, quantiles)
    for number, value in enumerate(output):
        wished = total * number / (quantiles - 1)
        below = sum(weights[:value])
        assert below - epsilon * total <= wished <= below + weights[value] + epsilon * total


@pytest.mark.parametrize(
    ("arguments", "elements", "expected"),
    [
        ({"num_quantiles": 5}, list(range(101)), [0, 25, 50, 75, 100]),
        ({"num_quantiles": 5, "reverse": True}, list(range(101)), [100, 75, 50, 25, 0]),
        ({"num_quantiles": 3, "key": len}, ["aa", "b", "cccc"], ["b", "aa", "cccc"]),
        ({"num_quantiles": 4}, [7], [7, 7, 7, 7]),
        ({"num_quantiles": 4}, [], []),
        (
            {"num_quantiles": 5, "input_batched": True},
            [list(range(50)), list(range(50, 101))],
            [0, 25, 50, 75, 100],
        ),
        (
            {"num_quantiles": 5, "input_batched": True, "weighted": True},
            [([1, 2, 3], [1, 1, 6]), ([4], [2])],
            [1, 3, 3, 3, 4],
        ),
        # Weights that sum to 1 are as good as others.
        ({"num_quantiles": 3, "weighted": True}, [(1, 0.1), (2, 0.1), (3, 0.8)], [1, 3, 3]),
    ],
)
def test_quantiles_of_few_elements_are_exact(arguments, elements, expected):
    assert stats.ApproximateQuantilesCombineFn.create(**arguments).apply(elements) == expected


def test_fewer_than_two_quantiles_are_refused():
    with pytest.raises(ValueError, match="num_quantiles must be 2 or more, got 1"):
        stats.ApproximateQuantiles.Globally(1)


def test_approximate_unique_needs_a_coder_that_is_deterministic() -> None:
    text = r'The key coder "Base64PickleCoder" for ApproximateUniqueCombineFn is not deterministic\.(?s:.*)hint: give'
    with pytest.raises(ValueError, match=text):
        stats.ApproximateUniqueCombineFn(30, Base64PickleCoder())
