"""Bad input: state, timers and side inputs."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "State, timers and side inputs",
    "",
    (
        Row(
            "state for elements without keys",
            write="""
                from penstock.coders import VarIntCoder
                from penstock.transforms.userstate import BagStateSpec

                class Remember(beam.DoFn):
                    SEEN = BagStateSpec("seen", VarIntCoder())

                    def process(self, number, seen=beam.DoFn.StateParam(SEEN)):
                        seen.add(number)

                p | beam.Create([1]) | beam.ParDo(Remember())
                """,
            see="""
                ValueError: Input elements to the transform 'ParDo(Remember)' with stateful DoFn must be key-value pairs, not <class 'int'>
                  at step 'ParDo(Remember)' (game.py:10)
                  hint: make pairs first, e.g. with Map(lambda x: (key_of(x), x)) or WithKeys
                """,
        ),
        Row(
            "state in windows that merge",
            write="""
                from penstock.coders import VarIntCoder
                from penstock.transforms.userstate import BagStateSpec

                class Remember(beam.DoFn):
                    SEEN = BagStateSpec("seen", VarIntCoder())

                    def process(self, pair, seen=beam.DoFn.StateParam(SEEN)):
                        seen.add(pair[1])

                visits = p | beam.Create([("ann", 1)]) | beam.WindowInto(beam.window.Sessions(60))
                visits | beam.ParDo(Remember())
                p.run()
                """,
            see="""
                penstock.error.UnsupportedByRunner: state belongs to one window, and the windows of Sessions(gap_size=Duration(60), merge_touching=False) merge
                  at step 'ParDo(Remember)' (game.py:11)
                  hint: use windows that do not merge, or group first and process the groups
                """,
        ),
        Row(
            "two cells of one name",
            write="""
                from penstock.coders import VarIntCoder
                from penstock.transforms.userstate import BagStateSpec, SetStateSpec

                class Remember(beam.DoFn):
                    SEEN = BagStateSpec("seen", VarIntCoder())
                    ONCE = SetStateSpec("seen", VarIntCoder())

                    def process(self, pair, seen=beam.DoFn.StateParam(SEEN), once=beam.DoFn.StateParam(ONCE)):
                        seen.add(pair[1])

                p | beam.Create([("ann", 1)]) | beam.ParDo(Remember())
                """,
            see="""
                ValueError: DoFn Remember has duplicate process method parameters: ['StateParam(seen)', 'StateParam(seen)']
                  at game.py:11
                  hint: ask for each once, and give each cell of state its own name
                """,
        ),
        Row(
            "a state without a name",
            write="""
                from penstock.coders import VarIntCoder
                from penstock.transforms.userstate import BagStateSpec

                BagStateSpec("", VarIntCoder())
                """,
            see="""
                TypeError: the name of a state must be a string that is not empty, but is ''
                  at game.py:4
                  hint: write BagStateSpec('seen', VarIntCoder()), for example
                """,
        ),
        Row(
            "a state without a coder",
            write="""
                from penstock.transforms.userstate import BagStateSpec

                BagStateSpec("seen", int)
                """,
            see="""
                TypeError: the coder of state 'seen' is not a Coder: <class 'int'>
                  at game.py:3
                  hint: e.g. VarIntCoder()
                """,
        ),
        Row(
            "a value that the coder of its state does not take",
            write="""
                from penstock.coders import StrUtf8Coder
                from penstock.transforms.userstate import BagStateSpec

                class Remember(beam.DoFn):
                    SEEN = BagStateSpec("seen", StrUtf8Coder())

                    def process(self, pair, seen=beam.DoFn.StateParam(SEEN)):
                        seen.add(pair[1])

                p | beam.Create([("ann", 7)]) | beam.ParDo(Remember())
                p.run()
                """,
            see="""
                AttributeError: the coder StrUtf8Coder of BagStateSpec(seen) cannot encode a value of type int: 'int' object has no attribute 'encode'
                  at step 'ParDo(Remember)' (game.py:10)
                  hint: use a coder for values of type int, or correct its encode
                """,
            on_spark=True,
        ),
        Row(
            "a timer without a method",
            write="""
                from penstock.transforms.timeutil import TimeDomain
                from penstock.transforms.userstate import TimerSpec

                class Wait(beam.DoFn):
                    END = TimerSpec("end", TimeDomain.WATERMARK)

                    def process(self, pair, end=beam.DoFn.TimerParam(END)):
                        end.set(60)

                p | beam.Create([("ann", 1)]) | beam.ParDo(Wait())
                """,
            see="""
                ValueError: DoFn Wait has a TimerSpec without an associated on_timer callback: TimerSpec(ts-end).
                  at game.py:10
                  hint: decorate a method with @on_timer(spec)
                """,
        ),
        Row(
            "a callback for the end of windows without state",
            write="""
                from penstock.transforms.userstate import on_window_expiration

                class Ends(beam.DoFn):
                    def process(self, pair):
                        yield pair

                    @on_window_expiration
                    def end(self, key=beam.DoFn.KeyParam):
                        yield key, "has ended"

                p | beam.Create([("ann", 1)]) | beam.ParDo(Ends())
                """,
            see="""
                ValueError: Ends has a method for the end of its windows, end, and neither state nor timers to end
                  at game.py:11
                  hint: write a value into a state for each key that the method is to be called for
                """,
        ),
        Row(
            "a time domain that does not exist",
            write="""
                from penstock.transforms.userstate import TimerSpec

                TimerSpec("end", "EVENT_TIME")
                """,
            see="""
                ValueError: Unsupported TimeDomain: 'EVENT_TIME'
                  at game.py:3
                  hint: use TimeDomain.WATERMARK or TimeDomain.REAL_TIME
                """,
        ),
        Row(
            "a parameter that start_bundle cannot have",
            write="""
                class Count(beam.DoFn):
                    def start_bundle(self, at=beam.DoFn.TimestampParam):
                        self.at = at

                    def process(self, number):
                        yield number

                p | beam.Create([1]) | beam.ParDo(Count())
                """,
            see="""
                ValueError: DoFn.process() method-only parameter TimestampParam cannot be used in Count.start_bundle
                  at game.py:8
                  hint: only process handles one element, so only there it has a value
                """,
        ),
        Row(
            "a PCollection as an argument",
            write="""
                rates = p | "Rates" >> beam.Create([2])
                p | beam.Create([1]) | beam.Map(lambda number, rate: number * rate, rates)
                """,
            see="""
                penstock.error.SideInputError: PCollection used directly as side input argument
                  at game.py:2
                  hint: wrap it in AsIter(pcollection) or AsSingleton(pcollection) to say how it is used
                """,
        ),
        Row(
            "a side input as an input",
            write="""
                rates = p | "Rates" >> beam.Create([2])
                beam.pvalue.AsSingleton(rates) | beam.Map(str)
                """,
            see="""
                TypeError: an input is of the type AsSingleton, and not a PCollection
                  at game.py:2
                  hint: pass PCollections, or lists of elements
                """,
        ),
        Row(
            "a list as a side input",
            write="""
                beam.pvalue.AsSingleton([2])
                """,
            see="""
                TypeError: AsSingleton takes a PCollection, not a list
                  at game.py:1
                  hint: pass plain values as ordinary arguments
                """,
        ),
        Row(
            "a side input that the function does not take",
            write="""
                rates = p | "Rates" >> beam.Create([2])
                p | beam.Create([1]) | beam.Map(lambda number: number, beam.pvalue.AsSingleton(rates))
                """,
            see="""
                penstock.functions.signature.ArgumentsError: <lambda at game.py:2>, passed to Map, is given 1 argument too many
                  at game.py:2
                  hint: check the names and the number of its parameters
                """,
        ),
        Row(
            "a side input of another pipeline",
            write="""
                rates = beam.Pipeline() | "Rates" >> beam.Create([2])
                p | beam.Create([1]) | beam.Map(lambda number, rate: number, beam.pvalue.AsSingleton(rates))
                """,
            see="""
                ValueError: Mixing values in different pipelines is not allowed
                  at step 'Map(<lambda at game.py:2>)' (game.py:2)
                  hint: make all inputs in one pipeline
                """,
        ),
    ),
)
