"""Bad input: your functions."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "Your functions",
    "The traceback in the worker, and what to do about the exception of a function of yours, follow as a note.",
    (
        Row(
            "an exception in a function",
            write="""
                def parse(line):
                    return int(line)

                p | beam.Create(["1", "x"]) | "Parse" >> beam.Map(parse)
                p.run()
                """,
            see="""
                ValueError: invalid literal for int() with base 10: 'x' [while running 'Parse' (game.py:4)]
                """,
            on_spark=True,
        ),
        Row(
            "a FlatMap that returns a number",
            write="""
                p | beam.Create([1]) | "Numbers" >> beam.FlatMap(lambda number: number)
                p.run()
                """,
            see="""
                TypeError: FlatMap and ParDo must return an iterable. <class 'int'> was returned instead: 'int' object is not iterable and yields no outputs
                  at step 'Numbers' (game.py:1)
                  hint: yield the element, return [element], or use Map
                """,
            on_spark=True,
        ),
        Row(
            "a function that ends the program",
            write="""
                import sys

                p | beam.Create([1]) | "Stop" >> beam.Map(lambda number: sys.exit(3))
                p.run()
                """,
            see="""
                penstock_spark.reports.failure.UserCodeError: the step raised SystemExit: 3
                  at step 'Stop' (game.py:3)
                  hint: raise an exception that says what is wrong: a step cannot end the program
                """,
            on_spark=True,
        ),
        Row(
            "a lock in a function",
            write="""
                import threading

                lock = threading.Lock()
                p | beam.Create([1]) | "Locked" >> beam.Map(lambda number: lock.locked())
                p.run()
                """,
            see="""
                RuntimeError: Unable to pickle what this step sends to the workers: cannot pickle '_thread.lock' object
                  at step 'Locked' (game.py:4)
                  hint: open files, locks and connections in DoFn.setup, and nowhere else
                """,
            on_spark=True,
        ),
        Row(
            "an object in a function that cannot be unpickled",
            write="""
                class Missing(Exception):
                    def __init__(self, place, *, why):
                        super().__init__(place)
                        self.why = why

                missing = Missing("Rome", why="closed")
                p | beam.Create([1]) | "Look" >> beam.Map(lambda number: missing.why) | "Show" >> beam.Map(print)
                p.run()
                """,
            see="""
                penstock.error.RunnerError: the workers cannot unpickle what this step sends to them: TypeError: Missing.__init__() missing 1 required keyword-only argument: 'why'
                  at step 'Look' (game.py:7)
                  hint: make the object in DoFn.setup, or give its class a __reduce__ with all arguments of its __init__
                """,
            on_spark=True,
        ),
        Row(
            "a type that a hint promised",
            write="""
                checked = beam.Pipeline(runtime_type_check=True)
                words = checked | beam.Create(["a"]) | "Length" >> beam.Map(lambda word: word).with_output_types(int)
                words | beam.Map(print)
                checked.run()
                """,
            see="""
                penstock.typehints.signatures.TypeCheckError: Runtime type violation detected within ParDo(Length): According to type-hint expected output should be of type <class 'int'>. Instead, received an instance of type <class 'str'>. [while running 'Length' (game.py:2)]
                  hint: correct the output's hint <class 'int'>, or the code
                """,
            on_spark=True,
        ),
        Row(
            "a combiner without its methods",
            write="""
                class Total(beam.CombineFn):
                    def create_accumulator(self):
                        return 0

                p | beam.Create([("a", 1)]) | "Total" >> beam.CombinePerKey(Total()) | beam.Map(print)
                p.run()
                """,
            see="""
                NotImplementedError: Total defines no add_input method
                  at step 'Total' (game.py:5)
                  hint: def add_input(self, accumulator, element): return ...
                """,
            on_spark=True,
        ),
        Row(
            "a time that is None",
            write="""
                p | beam.Create([1]) | "Stamp" >> beam.Map(lambda number: beam.window.TimestampedValue(number, None))
                p.run()
                """,
            see="""
                TypeError: cannot interpret None as a Timestamp [while running 'Stamp' (game.py:1)]
                  at game.py:1
                  hint: pass seconds, as an int or a float
                """,
            on_spark=True,
        ),
        Row(
            "two values instead of one",
            write="""
                rates = p | "Rates" >> beam.Create([2, 3])
                p | beam.Create([1]) | "Convert" >> beam.Map(lambda number, rate: number * rate, beam.pvalue.AsSingleton(rates))
                p.run()
                """,
            see="""
                ValueError: a PCollection of 2 elements is read as a singleton side input
                  at step 'Convert' (game.py:2)
                  hint: combine it to one element per window, or read it with AsIter or AsList
                """,
            on_spark=True,
        ),
        Row(
            "a side input that has no pairs",
            write="""
                rates = p | "Rates" >> beam.Create([2])
                p | beam.Create([1]) | "Convert" >> beam.Map(lambda number, rates: rates[number], beam.pvalue.AsDict(rates))
                p.run()
                """,
            see="""
                TypeError: a side input is read as a dict, and has an element of type int, which is not a pair
                  at step 'Convert' (game.py:2)
                  hint: make pairs (key, value) of its elements, or read it with AsList
                """,
            on_spark=True,
        ),
    ),
)
