"""Bad input: type hints."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "Type hints",
    "",
    (
        Row(
            "a function for another type",
            write="""
                def double(number: int) -> int:
                    return 2 * number

                p | beam.Create(["1"]) | beam.Map(double)
                """,
            see="""
                penstock.typehints.signatures.TypeCheckError: The transform 'Map(double)' requires PCollections of type '<class 'int'>' but was applied to a PCollection of type '<class 'str'>' (produced by the transform 'Create')
                  at step 'Map(double)' (game.py:4)
                  hint: correct the type hints of one of the two
                """,
        ),
        Row(
            "a declared type that does not fit",
            write="""
                p | beam.Create(["1"]) | beam.Map(len).with_input_types(int)
                """,
            see="""
                penstock.typehints.signatures.TypeCheckError: The transform 'Map(len)' requires PCollections of type '<class 'int'>' but was applied to a PCollection of type '<class 'str'>' (produced by the transform 'Create')
                  at step 'Map(len)' (game.py:1)
                  hint: correct the type hints of one of the two
                """,
        ),
        Row(
            "a grouping of elements that are not pairs",
            write="""
                p | beam.Create([1, 2]) | beam.GroupByKey()
                """,
            see="""
                penstock.typehints.signatures.TypeCheckError: Input type hint violation at GroupByKey: expected Tuple[TypeVariable[K], TypeVariable[V]], got <class 'int'>
                  at step 'GroupByKey' (game.py:1)
                  hint: make pairs first, e.g. with Map(lambda x: (key_of(x), x)) or WithKeys
                """,
        ),
        Row(
            "a sum of elements that are not pairs",
            write="""
                p | beam.Create([1, 2]) | beam.CombinePerKey(sum)
                """,
            see="""
                penstock.typehints.signatures.TypeCheckError: Input type hint violation at CombinePerKey(sum): expected Tuple[TypeVariable[K], TypeVariable[V]], got <class 'int'>
                  at step 'CombinePerKey(sum)' (game.py:1)
                  hint: make pairs first, e.g. with Map(lambda x: (key_of(x), x)) or WithKeys
                """,
        ),
        Row(
            "a field that rows do not have",
            write="""
                p | beam.Create([beam.Row(team="red", points=3)]) | beam.GroupBy("taem")
                """,
            see="""
                penstock.typehints.signatures.TypeCheckError: the elements have no field 'taem'
                  at step 'GroupBy(taem)/Key' (game.py:1)
                  hint: did you mean 'team'? The fields are: team, points
                """,
        ),
        Row(
            "a field that rows do not have, in a function",
            write="""
                scores = p | beam.Create([beam.Row(team="red", score=3)])
                scores | "Long" >> beam.Filter(lambda row: row.scroe > 10)
                """,
            see="""
                penstock.typehints.signatures.TypeCheckError: the elements have no field 'scroe'
                  at step 'Long' (game.py:2)
                  hint: did you mean 'score'? The fields are: team, score
                """,
        ),
        Row(
            "a field that a row does not have",
            write="""
                beam.Row(team="red", score=3).scroe
                """,
            see="""
                AttributeError: a Row with the fields ('team', 'score') has no field 'scroe'
                  at game.py:1
                  hint: did you mean 'score'?
                """,
        ),
        Row(
            "a field expression that is not one",
            write="""
                p | beam.Create([beam.Row(team="red")]) | beam.Select(5)
                """,
            see="""
                TypeError: Field expression 5 at 0 must be a callable or a string
                  at game.py:1
                  hint: give the name of an attribute, or a function of the element
                """,
        ),
        Row(
            "a FlatMap whose type hint returns a number",
            write="""
                def length(line) -> int:
                    return len(line)

                p | beam.Create(["a"]) | beam.FlatMap(length)
                """,
            see="""
                penstock.typehints.signatures.TypeCheckError: Return value not iterable: length: <class 'int'> is not iterable
                  at game.py:4
                  hint: use Map, or return an iterable
                """,
        ),
        Row(
            "a process that returns a number",
            write="""
                class Length(beam.DoFn):
                    def process(self, line) -> int:
                        return len(line)

                p | beam.Create(["a"]) | beam.ParDo(Length())
                """,
            see="""
                ValueError: Return value not iterable: Length.process: <class 'int'> is not iterable
                  at game.py:5
                  hint: annotate process as returning an Iterable of elements
                """,
        ),
        Row(
            "a hint that is a number",
            write="""
                p | beam.Create([1]) | beam.Map(str).with_output_types(5)
                """,
            see="""
                penstock.typehints.constraints.NotAHintError: Type hints for a PTransform must be a non-sequence, a type, or a TypeConstraint. 5 is an instance of int.
                  at game.py:1
                  hint: write a class, or a hint such as List[int]
                """,
        ),
        Row(
            "a dict hint of one type",
            write="""
                beam.typehints.Dict[int]
                """,
            see="""
                penstock.typehints.constraints.NotAHintError: Parameter to Dict type-hint must be a tuple of types: Dict[.., ..].
                  at game.py:1
                  hint: write Dict[str, int], for example
                """,
        ),
        Row(
            "two output types",
            write="""
                @beam.typehints.with_output_types(int, str)
                def parse(line):
                    return line
                """,
            see="""
                ValueError: 'returns' accepts only a single positional argument.
                  at game.py:1
                  hint: In order to specify multiple return types, use the 'Tuple' type-hint.
                """,
        ),
        Row(
            "a required hint that is missing",
            write="""
                strict = beam.Pipeline(type_check_strictness="ALL_REQUIRED")
                strict | beam.Create([1]).with_output_types(int) | beam.Map(lambda number: number)
                """,
            see="""
                penstock.typehints.signatures.TypeCheckError: Pipeline type checking is enabled, however no output type-hint was found for the PTransform ParDo(Map(<lambda at game.py:2>))
                  at step 'Map(<lambda at game.py:2>)' (game.py:2)
                  hint: call with_output_types on it, or leave out type_check_strictness=ALL_REQUIRED
                """,
        ),
    ),
)
