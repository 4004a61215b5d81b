"""Bad input: the construction of pipelines."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "The construction of pipelines",
    "",
    (
        Row(
            "a label that is used twice",
            write="""
                numbers = p | "Numbers" >> beam.Create([1])
                numbers | "Numbers" >> beam.Map(str)
                """,
            see="""
                RuntimeError: A transform with label "Numbers" already exists in the pipeline
                  at game.py:2; the first one is at game.py:1
                  hint: give one of them a label: pvalue | "label" >> transform, or set the option auto_unique_labels
                """,
        ),
        Row(
            "a label that is not a string",
            write="""
                p | 1 >> beam.Create([1])
                """,
            see="""
                TypeError: the label 1 is not a string
                  at game.py:1
                  hint: write 'label' >> transform
                """,
        ),
        Row(
            "a label between bars",
            write="""
                p | "Numbers" | beam.Create([1])
                """,
            see="""
                TypeError: Expected a PTransform object, got 'Numbers'
                  at game.py:1
                  hint: write a label before its transform, with >>: 'Numbers' >> Map(function)
                """,
        ),
        Row(
            "a label with half of a character",
            write="""
                p | "Numbers \\ud83d" >> beam.Create([1])
                """,
            see="""
                ValueError: the label 'Numbers \\ud83d' is not text: '\\ud83d' is half of a character
                  at game.py:1
                  hint: leave it out, or decode the name with the encoding that it has
                """,
        ),
        Row(
            "a PCollection of another pipeline",
            write="""
                ours = p | beam.Create([1])
                theirs = beam.Pipeline() | beam.Create([2])
                (ours, theirs) | beam.Flatten()
                """,
            see="""
                ValueError: Mixing values in different pipelines is not allowed
                  at step 'Flatten' (game.py:3)
                  hint: make all inputs in one pipeline
                """,
        ),
        Row(
            "a number among PCollections",
            write="""
                (p | beam.Create([1]), 2) | beam.Flatten()
                """,
            see="""
                TypeError: an input is of the type int, and not a PCollection
                  at game.py:1
                  hint: pass PCollections, or lists of elements
                """,
        ),
        Row(
            "one PCollection to flatten",
            write="""
                p | beam.Create([1]) | beam.Flatten()
                """,
            see="""
                ValueError: Input to Flatten must be an iterable. Got a value of type PCollection
                  at step 'Flatten' (game.py:1)
                  hint: write (first, second) | Flatten()
                """,
        ),
        Row(
            "no PCollection to flatten",
            write="""
                [] | beam.Flatten()
                """,
            see="""
                ValueError: 'Flatten' requires a pipeline to be specified as there are no deferred inputs
                  at step 'Flatten' (game.py:1)
                  hint: pass pipeline=... to the transform
                """,
        ),
        Row(
            "one PCollection to join",
            write="""
                p | beam.Create([("a", 1)]) | beam.CoGroupByKey()
                """,
            see="""
                TypeError: CoGroupByKey joins several PCollections, and its input is of the type PCollection
                  at game.py:1
                  hint: write {'mail': mails, 'phone': phones} | CoGroupByKey()
                """,
        ),
        Row(
            "a string to create from",
            write="""
                p | beam.Create("abc")
                """,
            see="""
                TypeError: PTransform Create: Refusing to treat string as an iterable. (string='abc')
                  at step 'Create' (game.py:1)
                  hint: put it into a list
                """,
        ),
        Row(
            "a number to create from",
            write="""
                p | beam.Create(5)
                """,
            see="""
                TypeError: Create needs an iterable of values, not an int
                  at step 'Create' (game.py:1)
                  hint: put a single value into a list
                """,
        ),
        Row(
            "no function",
            write="""
                p | beam.Create([1]) | beam.Map(5)
                """,
            see="""
                TypeError: Map can be used only with callable objects. Received 5 instead
                  at game.py:1
                  hint: pass a function
                """,
        ),
        Row(
            "a function without parameters",
            write="""
                p | beam.Create([1]) | beam.Map(lambda: 1)
                """,
            see="""
                penstock.functions.signature.ArgumentsError: <lambda at game.py:1>, passed to Map, takes no element
                  at game.py:1
                  hint: its first parameter is the element
                """,
        ),
        Row(
            "a function that needs another argument",
            write="""
                p | beam.Create([1]) | beam.Map(lambda x, y: x + y)
                """,
            see="""
                penstock.functions.signature.ArgumentsError: <lambda at game.py:1>, passed to Map, is missing a required argument: 'y'
                  at game.py:1
                  hint: pass it as a further argument of the transform, or use MapTuple or FlatMapTuple if the elements are tuples
                """,
        ),
        Row(
            "one argument too many",
            write="""
                p | beam.Create([1]) | beam.Map(lambda x: x, 2)
                """,
            see="""
                penstock.functions.signature.ArgumentsError: <lambda at game.py:1>, passed to Map, is given 1 argument too many
                  at game.py:1
                  hint: check the names and the number of its parameters
                """,
        ),
        Row(
            "an argument that no step takes",
            write="""
                p | beam.Create([1]) | beam.Map(lambda x: x, factor=2)
                """,
            see="""
                penstock.functions.signature.ArgumentsError: <lambda at game.py:1>, passed to Map, cannot be given an argument 'factor'
                  at game.py:1
                  hint: check the names and the number of its parameters
                """,
        ),
        Row(
            "a DoFn as a function",
            write="""
                class Double(beam.DoFn):
                    def process(self, number):
                        yield 2 * number

                p | beam.Create([1]) | beam.Map(Double())
                """,
            see="""
                TypeError: Map can be used only with callable objects. Received <game.Double object at ...> instead
                  at game.py:5
                  hint: use ParDo for a DoFn
                """,
        ),
        Row(
            "a class instead of a DoFn",
            write="""
                class Double(beam.DoFn):
                    def process(self, number):
                        yield 2 * number

                p | beam.Create([1]) | beam.ParDo(Double)
                """,
            see="""
                ValueError: Use Double() not Double
                  at game.py:5
                  hint: call the class to make an instance
                """,
        ),
        Row(
            "a DoFn without process",
            write="""
                class Double(beam.DoFn):
                    pass

                p | beam.Create([1]) | beam.ParDo(Double())
                """,
            see="""
                TypeError: Double defines no process method
                  at step 'ParDo(Double)' (game.py:4)
                  hint: def process(self, element): yield ...
                """,
        ),
        Row(
            "a function as a transform",
            write="""
                p | beam.Create([1]) | str
                """,
            see="""
                TypeError: Expected a PTransform object, got <class 'str'>
                  at game.py:1
                  hint: call the class to make a transform; wrap a function in Map or FlatMap
                """,
        ),
        Row(
            "a transform on a pipeline",
            write="""
                p | beam.Map(str)
                """,
            see="""
                penstock.typehints.signatures.TypeCheckError: Transform 'Map(str)' expects a PCollection as input. Got a PBegin/Pipeline instead.
                  at step 'Map(str)' (game.py:1)
                  hint: apply it to the output of a transform such as Create or a read
                """,
        ),
        Row(
            "a transform without expand",
            write="""
                class Double(beam.PTransform):
                    pass

                p | beam.Create([1]) | Double()
                """,
            see="""
                NotImplementedError: Double does not define an expand method
                  at game.py:4
                  hint: define one: def expand(self, pcoll): return pcoll | ...
                """,
        ),
        Row(
            "a transform that returns nothing",
            write="""
                class Double(beam.PTransform):
                    def expand(self, numbers):
                        numbers | beam.Map(lambda number: 2 * number)

                p | beam.Create([1]) | Double() | beam.Map(print)
                """,
            see="""
                penstock.typehints.signatures.TypeCheckError: Transform 'Map(print)' was applied to the output of an object of type None
                  at game.py:5
                  hint: return the output from the expand method of the transform before it
                """,
        ),
        Row(
            "a loop over a PCollection",
            write="""
                for number in p | beam.Create([1, 2]):
                    print(number)
                """,
            see="""
                TypeError: a PCollection cannot be iterated: it has no elements before the pipeline runs
                  at game.py:1
                  hint: apply a transform with `|`, or pass it as a side input, e.g. AsIter(pcoll)
                """,
        ),
        Row(
            "a PCollection in a function",
            write="""
                limit = p | "Limit" >> beam.Create([5])
                p | beam.Create([1, 7]) | beam.Filter(lambda number: number < limit)
                """,
            see="""
                penstock.error.SideInputError: <lambda at game.py:2> uses the PCollection 'limit', whose elements user code cannot see
                  at step 'Filter(<lambda at game.py:2>)' (game.py:2)
                  hint: use a side input: add a parameter to the function or to process, and pass AsList(limit), AsIter(limit) or AsSingleton(limit) to the transform
                """,
        ),
        Row(
            "a missing number of parts",
            write="""
                p | beam.Create([1]) | beam.Partition(lambda number, parts: 0)
                """,
            see="""
                ValueError: Partition needs the number of parts, 1 or more, after the function, not ()
                  at step 'Partition(CallableWrapperPartitionFn)' (game.py:1)
                  hint: Partition(fn, 2)
                """,
        ),
        Row(
            "a tag that is not a string",
            write="""
                p | beam.Create([1]) | beam.Map(str).with_outputs(1)
                """,
            see="""
                TypeError: a tag is a string, not 1
                  at step 'Map(str)' (game.py:1)
                  hint: write '1'
                """,
        ),
        Row(
            "a tag that is also the main one",
            write="""
                p | beam.Create([1]) | beam.Map(str).with_outputs("errors", main="errors")
                """,
            see="""
                ValueError: Main output tag 'errors' must be different from side output tags ('errors',)
                  at step 'Map(str)' (game.py:1)
                  hint: give the main output another tag
                """,
        ),
        Row(
            "an output that is not declared",
            write="""
                parsed = p | beam.Create([1]) | beam.Map(str).with_outputs("errors")
                parsed.error
                """,
            see="""
                ValueError: Tag 'error' is neither the main tag None nor one of ('errors',)
                  at step 'Map(str)' (game.py:1)
                  hint: did you mean 'errors'?
                """,
        ),
        Row(
            "a threshold of failures above 1",
            write="""
                p | beam.Create([1]) | beam.Map(str).with_exception_handling(threshold=5)
                """,
            see="""
                ValueError: the threshold is 5
                  at game.py:1
                  hint: pass a share, from 0 to 1
                """,
        ),
        Row(
            "concurrency for a function that is not asynchronous",
            write="""
                p | beam.Create([1]) | beam.Map(str).with_concurrency(50)
                """,
            see="""
                TypeError: str, passed to Map is not asynchronous
                  at step 'Map(str)' (game.py:1)
                  hint: define it with async def; await asyncio.to_thread(function, ...) calls a function that waits
                """,
        ),
        Row(
            "no combiner",
            write="""
                p | beam.Create([("a", 1)]) | beam.CombinePerKey("sum")
                """,
            see="""
                TypeError: Expected a CombineFn or callable, got 'sum'
                  at game.py:1
                  hint: e.g. sum, or MeanCombineFn()
                """,
        ),
        Row(
            "the class of a combiner",
            write="""
                p | beam.Create([("a", 1)]) | beam.CombinePerKey(beam.combiners.MeanCombineFn)
                """,
            see="""
                ValueError: Use MeanCombineFn() not MeanCombineFn
                  at game.py:1
                  hint: call the class to make an instance
                """,
        ),
        Row(
            "a batch size of 0",
            write="""
                p | beam.Create([("a", 1)]) | beam.GroupIntoBatches(0)
                """,
            see="""
                ValueError: batch_size must be a positive value, got 0
                  at game.py:1
                  hint: pass 1 or more
                """,
        ),
        Row(
            "a batch size as a string",
            write="""
                p | beam.Create([("a", 1)]) | beam.GroupIntoBatches("10")
                """,
            see="""
                TypeError: batch_size must be an integer, but is '10'
                  at game.py:1
                  hint: pass batch_size=10
                """,
        ),
        Row(
            "batch sizes the wrong way round",
            write="""
                p | beam.Create([1]) | beam.BatchElements(min_batch_size=10, max_batch_size=5)
                """,
            see="""
                ValueError: Minimum (10) must not be greater than maximum (5)
                  at game.py:1
                  hint: pass max_batch_size=10 or more
                """,
        ),
        Row(
            "a top that is not a number",
            write="""
                p | beam.Create([1]) | beam.combiners.Top.Of("3")
                """,
            see="""
                TypeError: n must be an integer, but is '3'
                  at game.py:1
                  hint: pass n=3
                """,
        ),
        Row(
            "a part of Beam that penstock does not have",
            write="""
                from penstock.io.gcp import bigquery
                """,
            see="""
                ModuleNotFoundError: No module named 'penstock.io.gcp'
                  at game.py:1
                  hint: Beam has it, and penstock does not; Spark reads and writes these by format name or path: `penstock.io.sparkio`
                """,
        ),
        Row(
            "a misspelled name, from the wrong module",
            write="""
                from penstock import FixedWindow
                """,
            see="""
                ImportError: cannot import name 'FixedWindow' from 'penstock'
                  at game.py:1
                  hint: did you mean FixedWindows, of penstock.transforms.window?
                """,
        ),
        Row(
            "a misspelled module",
            write="""
                from penstock.transfroms import util
                """,
            see="""
                ModuleNotFoundError: No module named 'penstock.transfroms'
                  at game.py:1
                  hint: did you mean penstock.transforms?
                """,
        ),
        Row(
            "a misspelled name of a module",
            write="""
                p | beam.Create([1]) | beam.FlatMp(range)
                """,
            see="""
                AttributeError: module 'penstock' has no attribute 'FlatMp'
                  at game.py:1
                  hint: did you mean FlatMap?
                """,
        ),
        Row(
            "a name of Beam that penstock does not have",
            write="""
                beam.io.ReadFromPubSub("topic")
                """,
            see="""
                AttributeError: module 'penstock.io' has no attribute 'ReadFromPubSub'
                  at game.py:1
                  hint: Beam has it, and penstock does not; Spark reads and writes these by format name or path: `penstock.io.sparkio`
                """,
        ),
    ),
)
