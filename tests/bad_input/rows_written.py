"""Bad input: what is written."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "What is written",
    "",
    (
        Row(
            "rows with different fields in one CSV file",
            write="""
                rows = [beam.Row(team="red"), beam.Row(team="blue", points=3)]
                mixed = p | beam.Create(rows).with_output_types(beam.typehints.Any)
                mixed | "Write" >> beam.io.WriteToCsv("out", num_shards=1)
                p.run()
                """,
            see="""
                ValueError: an element has the field 'points', and the first element of its file does not have it
                  at step 'Write' (game.py:3)
                  hint: declare all fields: give the elements a type of rows with .with_output_types(...)
                """,
            on_spark=True,
        ),
        Row(
            "a value that JSON cannot represent",
            write="""
                p | beam.Create([beam.Row(key=b"red")]) | "Write" >> beam.io.WriteToJson("out")
                p.run()
                """,
            see="""
                TypeError: a value of the field key has the type bytes, which JSON cannot represent
                  at step 'Write' (game.py:1)
                  hint: convert it in a Map before the write, or pass default_handler=str, for example
                """,
            on_spark=True,
        ),
        Row(
            "a file name that leads out of its folder",
            write="""
                naming = lambda *about: "../scores.csv"
                p | beam.Create([beam.Row(team="red")]) | "Write" >> beam.io.WriteToCsv("out", file_naming=naming)
                p.run()
                """,
            see="""
                ValueError: a file name leads out of the folder that is written to
                  at step 'Write' (game.py:2)
                  hint: correct file_naming
                """,
            on_spark=True,
        ),
        Row(
            "output that already exists",
            write="""
                import os

                p | beam.Create([beam.Row(team="red")]) | "Write" >> beam.io.WriteToSpark("parquet", os.path.abspath("out"))
                p.run()
                """,
            see="""
                penstock.error.RunnerError: /data/out already exists
                  at step 'Write' (game.py:3)
                  hint: write to another path, or choose the mode 'overwrite' or 'append'
                """,
            files={"out/old.parquet": "old"},
            on_spark=True,
        ),
        Row(
            "a file instead of a folder",
            write="""
                p | beam.Create(["a"]) | "Write" >> beam.io.WriteToText("out/lines")
                p.run()
                """,
            see="""
                NotADirectoryError: [Errno 20] /data/out/_penstock-temp-... cannot be written: Not a directory
                  at step 'Write' (game.py:1)
                  hint: write to another path, or move away what is in the way
                """,
            files={"out": "I am a file\n"},
            on_spark=True,
        ),
        Row(
            "a record that does not fit its schema",
            write="""
                import pyarrow

                schema = pyarrow.schema([("team", pyarrow.string()), ("points", pyarrow.int64())])
                p | beam.Create([{"team": "red", "points": "three"}]) | "Write" >> beam.io.WriteToParquet("out", schema)
                p.run()
                """,
            see="""
                TypeError: a value of the field points does not fit the type int64
                  at step 'Write' (game.py:4)
                  hint: correct the declared type or the schema, or convert the value first (an int has 64 bits)
                """,
            on_spark=True,
        ),
        Row(
            "records with a field that the schema lacks",
            write="""
                import pyarrow

                score = {"team": "red", "points": 3}
                scores = p | beam.Create([score]).with_output_types(beam.typehints.Any)
                scores | "Write" >> beam.io.WriteToParquet("out", pyarrow.schema([("team", pyarrow.string())]))
                p.run()
                """,
            see="""
                ValueError: an element has the field 'points', which the schema lacks
                  at step 'Write' (game.py:5)
                  hint: add it to the schema or the declared type, or leave it out of the elements before the write
                """,
            on_spark=True,
        ),
        Row(
            "rows of a known type with a field that the schema lacks",
            write="""
                import pyarrow

                scores = p | beam.Create([beam.Row(team="red", points=3)])
                scores | "Write" >> beam.io.WriteToOrc("out", pyarrow.schema([("team", pyarrow.string())]))
                """,
            see="""
                ValueError: the elements have the field 'points', which the schema lacks
                  at step 'Write' (game.py:4)
                  hint: add it to the schema, or leave it out of the elements before the write
                """,
        ),
        Row(
            "a time without a zone in a column of instants",
            write="""
                import datetime

                visits = p | beam.Create([beam.Row(at=datetime.datetime(2026, 7, 1, 12))])
                visits | "Write" >> beam.io.WriteToParquet("out")
                p.run()
                """,
            see="""
                TypeError: a time of the field at has no zone, so that its instant is unknown
                  at step 'Write' (game.py:4)
                  hint: add tzinfo=datetime.timezone.utc if it is in UTC, or write to a column of times without a zone
                """,
            on_spark=True,
        ),
        Row(
            "a time beyond the year 9999 in a column of instants",
            write="""
                from penstock.utils.timestamp import MAX_TIMESTAMP

                visits = p | beam.Create([beam.Row(team="red", at=MAX_TIMESTAMP)])
                visits | "Write" >> beam.io.WriteToParquet("out")
                p.run()
                """,
            see="""
                ValueError: a time of the field at is outside of the years 1 to 9999
                  at step 'Write' (game.py:4)
                  hint: filter out such elements, or convert the time to a number, with time.micros
                """,
            on_spark=True,
        ),
        Row(
            "None in a column that is required",
            write="""
                import pyarrow

                schema = pyarrow.schema([pyarrow.field("team", pyarrow.string(), nullable=False)])
                p | beam.Create([{"team": "red"}, {"team": None}]) | "Write" >> beam.io.WriteToParquet("out", schema)
                p.run()
                """,
            see="""
                TypeError: a value of the field team is None, which its type does not allow
                  at step 'Write' (game.py:4)
                  hint: correct the declared type or the schema, or filter out such elements before the write
                """,
            on_spark=True,
        ),
        Row(
            "a record without a field that is required",
            write="""
                import pyarrow

                schema = pyarrow.schema([pyarrow.field("team", pyarrow.string(), nullable=False)])
                teams = p | beam.Create([{}]).with_output_types(beam.typehints.Any)
                teams | "Write" >> beam.io.WriteToOrc("out", schema)
                p.run()
                """,
            see="""
                penstock.error.NoSuchField: a record has no field team
                  at step 'Write' (game.py:5)
                  hint: make the field nullable in the schema
                """,
            on_spark=True,
        ),
        Row(
            "an int of more than 64 bits in Avro",
            write="""
                from penstock.io.avroio import WriteToAvro

                p | beam.Create([beam.Row(points=2**63)]) | "Write" >> WriteToAvro("out")
                p.run()
                """,
            see="""
                TypeError: a value of the field points does not fit the type long
                  at step 'Write' (game.py:3)
                  hint: correct the declared type or the schema, or convert the value first (an int has 64 bits)
                """,
            on_spark=True,
        ),
        Row(
            "half of a character in a CSV column",
            write="""
                p | beam.Create([beam.Row(team="\\ud83d")]) | "Write" >> beam.io.WriteToCsv("out")
                p.run()
                """,
            see="""
                UnicodeEncodeError: 'utf-8' codec can't encode character '\\ud83d' in position 0: surrogates not allowed in the field team
                  at step 'Write' (game.py:1)
                  hint: replace such characters first: text.encode('utf-8', 'replace').decode('utf-8')
                """,
            on_spark=True,
        ),
        Row(
            "numbers as rows of CSV",
            write="""
                p | beam.Create([1, 2]) | "Write" >> beam.io.WriteToCsv("out")
                p.run()
                """,
            see="""
                TypeError: an element of type int has no named fields
                  at step 'Write' (game.py:1)
                  hint: make it a Row, e.g. with beam.Select, or a NamedTuple
                """,
            on_spark=True,
        ),
        Row(
            "an argument of to_csv that does not exist",
            write="""
                p | beam.Create([beam.Row(team="red")]) | "Write" >> beam.io.WriteToCsv("out", separator=";")
                p.run()
                """,
            see="""
                TypeError: to_csv of pandas has no argument 'separator'
                  at step 'Write' (game.py:1)
                  hint: see the arguments of pandas.DataFrame.to_csv
                """,
            on_spark=True,
        ),
        Row(
            "a schema of Avro that is not one",
            write="""
                from penstock.io.avroio import WriteToAvro

                p | beam.Create([{"team": "red"}]) | "Write" >> WriteToAvro("out", {"type": "recrod"})
                p.run()
                """,
            see="""
                ValueError: Avro files cannot be written with this schema and the codec deflate: {'type': 'recrod'}
                  at step 'Write' (game.py:3)
                  hint: correct the schema, or install the package that the codec needs
                """,
            on_spark=True,
        ),
        Row(
            "a query that divides by zero",
            write="""
                from penstock.io import WriteToMemory
                from penstock.transforms.sql import SqlTransform

                found = []
                rows = p | beam.Create([beam.Row(points=3, games=0)])
                rows | "Query" >> SqlTransform("SELECT points / games AS mean FROM PCOLLECTION") | WriteToMemory(found)
                p.run()
                print(found)
                """,
            see="""
                ArithmeticError: an SQL expression divides by zero
                  at step 'Query/Select' (game.py:6)
                  hint: write NULLIF(divisor, 0) to get NULL instead
                """,
            on_spark=True,
        ),
    ),
)
