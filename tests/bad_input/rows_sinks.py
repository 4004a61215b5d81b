"""Bad input: files that are written."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "Files that are written",
    "",
    (
        Row(
            "an empty prefix",
            write="""
                p | beam.Create(["a"]) | beam.io.WriteToText("")
                """,
            see="""
                ValueError: file_path_prefix is empty
                  at game.py:1
                  hint: pass a path, such as 'data/scores.txt'
                """,
        ),
        Row(
            "a negative number of files",
            write="""
                p | beam.Create(["a"]) | beam.io.WriteToText("out", num_shards=-1)
                """,
            see="""
                ValueError: num_shards is -1
                  at game.py:1
                  hint: pass 1 or more, or 0 to leave it to Spark
                """,
        ),
        Row(
            "a number of files as a string",
            write="""
                p | beam.Create(["a"]) | beam.io.WriteToText("out", num_shards="2")
                """,
            see="""
                TypeError: num_shards must be an integer, but is '2'
                  at game.py:1
                  hint: pass num_shards=2
                """,
        ),
        Row(
            "a template without the number of the file",
            write="""
                p | beam.Create(["a"]) | beam.io.WriteToText("out", shard_name_template="-X")
                """,
            see="""
                ValueError: Shard number pattern S+ not found in shard_name_template: -X
                  at game.py:1
                  hint: write, e.g., -SSSSS-of-NNNNN
                """,
        ),
        Row(
            "a frequency of 0",
            write="""
                p | beam.Create(["a"]) | beam.io.WriteToText("out", triggering_frequency=0)
                """,
            see="""
                ValueError: triggering_frequency must be greater than 0, but is 0
                  at game.py:1
                  hint: pass seconds, such as 60
                """,
        ),
        Row(
            "two writes with the same names",
            write="""
                lines = p | beam.Create(["a"])
                lines | "First" >> beam.io.WriteToText("lines")
                lines | "Second" >> beam.io.WriteToText("lines")
                p.run()
                """,
            see="""
                penstock.error.UnsupportedByRunner: its files have the same names as the files of 'First', and would replace them
                  at step 'Second' (game.py:3)
                  hint: give one of the two another path, or Flatten their inputs
                """,
        ),
        Row(
            "rows of an unknown type in Parquet",
            write="""
                p | beam.Create([1]) | beam.io.WriteToParquet("out")
                """,
            see="""
                ValueError: A schema is required to write non-schema'd data.
                  at step 'WriteToParquet' (game.py:1)
                  hint: pass schema=pyarrow.schema([...]), or give the elements a NamedTuple type
                """,
        ),
        Row(
            "folders by a column that rows do not have",
            write="""
                p | beam.Create([beam.Row(team="red", points=3)]) | beam.io.WriteToCsv("out", partition_by="day")
                """,
            see="""
                ValueError: partition_by has the column 'day', which the elements lack
                  at step 'WriteToCsv' (game.py:1)
                  hint: The columns are: team, points
                """,
        ),
        Row(
            "folders by all columns",
            write="""
                p | beam.Create([beam.Row(team="red")]) | beam.io.WriteToCsv("out", partition_by="team")
                """,
            see="""
                ValueError: partition_by has all columns, so that none is left for the files
                  at step 'WriteToCsv' (game.py:1)
                  hint: leave a column out of partition_by
                """,
        ),
        Row(
            "a save mode that does not exist",
            write="""
                p | beam.Create([beam.Row(team="red")]) | beam.io.WriteToSpark("parquet", "out", mode="replace")
                """,
            see="""
                ValueError: 'replace' is not a save mode of Spark
                  at game.py:1
                  hint: use one of append, overwrite, error, errorifexists, ignore
                """,
        ),
        Row(
            "an orientation of JSON that is not supported",
            write="""
                p | beam.Create([beam.Row(team="red")]) | beam.io.WriteToJson("out", orient="columns")
                """,
            see="""
                ValueError: WriteToJson takes only orient='records', not 'columns'
                  at game.py:1
                  hint: make the lines in a Map and write them with WriteToText
                """,
        ),
        Row(
            "a format of times that JSON files do not have",
            write="""
                p | beam.Create([beam.Row(team="red")]) | beam.io.WriteToJson("out", date_format="rfc")
                """,
            see="""
                ValueError: date_format must be 'epoch' or 'iso', but is 'rfc'
                  at game.py:1
                  hint: write date_format='epoch', for example
                """,
        ),
        Row(
            "an argument with which pandas would make a file itself",
            write="""
                p | beam.Create([beam.Row(team="red")]) | beam.io.WriteToJson("out", compression="gzip")
                """,
            see="""
                TypeError: WriteToJson does not support the arguments compression
                  at game.py:1
                  hint: use only these: date_format, date_unit, default_handler, double_precision, force_ascii, indent, lines, orient
                """,
        ),
        Row(
            "a codec of Avro that does not exist",
            write="""
                from penstock.io.avroio import WriteToAvro

                WriteToAvro("out", {"type": "long"}, codec="zip")
                """,
            see="""
                ValueError: Avro has no codec 'zip'
                  at game.py:3
                  hint: did you mean 'bzip2'?
                """,
        ),
    ),
)
