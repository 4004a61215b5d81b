"""Bad input: what is in files."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "What is in files",
    "",
    (
        Row(
            "lines with all kinds of line ends",
            write="""
                from penstock.io import WriteToMemory

                found = []
                p | beam.io.ReadFromText("*.txt") | WriteToMemory(found)
                p.run()
                print(found)
                """,
            see=r"""
                ['a', 'b', '', 'c\rd\r']
                """,
            files={"lines.txt": b"\xef\xbb\xbfa\r\nb\n\nc\rd\r", "more.txt": ""},
            on_spark=True,
        ),
        Row(
            "text that is not UTF-8",
            write="""
                p | "Read" >> beam.io.ReadFromText("lines.txt") | beam.Map(print)
                p.run()
                """,
            see="""
                UnicodeDecodeError: 'utf-8' codec can't decode byte 0xe9 in position 3: unexpected end of data in line 1 of ./lines.txt
                  at step 'Read' (game.py:1)
                  hint: pass a coder whose decode() knows the encoding, e.g. a subclass of coders.Coder; or pass rejects=True, which keeps such lines apart
                """,
            files={"lines.txt": b"caf\xe9\n"},
            on_spark=True,
        ),
        Row(
            "a compressed file that is truncated",
            write=r"""
                import gzip
                from pathlib import Path

                Path("lines.txt.gz").write_bytes(gzip.compress(b"a\n" * 1000)[:-12])
                p | "Read" >> beam.io.ReadFromText("lines.txt.gz") | beam.Map(print)
                p.run()
                """,
            see="""
                penstock.error.RunnerError: /data/lines.txt.gz is damaged or incomplete
                  at step 'Read' (game.py:5)
                  hint: replace the file with a complete one; if a program is still writing it, wait until it is done
                """,
            on_spark=True,
        ),
        Row(
            "a folder as a file",
            write="""
                p | "Read" >> beam.io.ReadFromText("scores") | beam.Map(print)
                """,
            see="""
                IsADirectoryError: ./scores is a folder, not a file
                  at step 'Read' (game.py:1)
                  hint: write ./scores/*
                """,
            files={"scores/a.txt": "a\n"},
        ),
        Row(
            "a file system that does not exist",
            write="""
                p | "Read" >> beam.io.ReadFromText("nosuch://host/scores.txt") | beam.Map(print)
                p.run()
                """,
            see="""
                penstock.error.RunnerError: Spark has no file system for nosuch://
                  at step 'Read' (game.py:1)
                  hint: correct the path, or give Spark the package of the file system: --spark_conf=spark.jars.packages=...
                """,
            on_spark=True,
        ),
        Row(
            "an empty CSV file",
            write="""
                from penstock.io import WriteToMemory

                found = []
                p | "Read" >> beam.io.ReadFromCsv("scores.csv") | WriteToMemory(found)
                p.run()
                print(found)
                """,
            see="""
                ValueError: csv scores.csv has no columns: the files are empty
                  at step 'Read' (game.py:4)
                  hint: pass names=[...], or give a pattern without these files
                """,
            files={"scores.csv": ""},
            on_spark=True,
        ),
        Row(
            "a CSV header with a duplicate name",
            write="""
                from penstock.io import WriteToMemory

                found = []
                p | "Read" >> beam.io.ReadFromCsv("scores.csv") | WriteToMemory(found)
                p.run()
                print(found)
                """,
            see="""
                penstock.error.RunnerError: the header of /data/scores.csv has a name twice or an empty one, or is not the header of the other files
                  at step 'Read' (game.py:4)
                  hint: give the files one header; names=[...] with header=0 replaces duplicate or empty names
                """,
            files={"scores.csv": "team,team\nred,blue\n"},
            on_spark=True,
        ),
        Row(
            "missing values in CSV",
            write=r"""
                from penstock.io import WriteToMemory

                found = []
                p | "Read" >> beam.io.ReadFromCsv("scores.csv") | WriteToMemory(found)
                p.run()
                print(*found, sep="\n")
                """,
            see="""
                Row(team='red', points=None)
                Row(team=None, points=3)
                Row(team=None, points=None)
                """,
            files={"scores.csv": "team,points\nred,\n,3\nNA,NaN\n"},
            on_spark=True,
        ),
        Row(
            "a CSV line with one field too many",
            write="""
                p | "Read" >> beam.io.ReadFromCsv("scores.csv") | beam.Map(print)
                p.run()
                """,
            see="""
                ValueError: 1 malformed line of CSV, the first file with one being scores.csv, where line 2 has 3 fields instead of 2
                  at step 'Read' (game.py:1)
                  hint: each line needs as many fields as the header; splittable=False allows line ends in quotes; rejects=True keeps such lines apart
                """,
            files={"scores.csv": "team,points\nred,3,5\n"},
            on_spark=True,
        ),
        Row(
            "CSV files with different headers",
            write=r"""
                from penstock.io import WriteToMemory

                found = []
                p | "Read" >> beam.io.ReadFromCsv("*.csv") | WriteToMemory(found)
                p.run()
                print(*found, sep="\n")
                """,
            see="""
                penstock.error.RunnerError: the header of /data/a.csv has a name twice or an empty one, or is not the header of the other files
                  at step 'Read' (game.py:4)
                  hint: give the files one header; names=[...] with header=0 replaces duplicate or empty names
                """,
            files={"a.csv": "team,points\nred,3\n", "b.csv": "points,team\n5,blue\n"},
            on_spark=True,
        ),
        Row(
            "a type that CSV values do not have",
            write="""
                p | "Read" >> beam.io.ReadFromCsv("scores.csv", dtype={"team": int}) | beam.Map(print)
                p.run()
                """,
            see="""
                ValueError: line 2 of scores.csv cannot be read: the value of team is not of type int
                  at step 'Read' (game.py:1)
                  hint: correct the type of the field, or pass rejects=True, which keeps such records apart
                """,
            files={"scores.csv": "team,points\nred,3\n"},
            on_spark=True,
        ),
        Row(
            "an empty field of CSV whose declared type excludes None",
            write="""
                from typing import NamedTuple

                class Score(NamedTuple):
                    team: str
                    points: int | None

                p | "Read" >> beam.io.ReadFromCsv("scores.csv").with_output_types(Score) | beam.Map(print)
                p.run()
                """,
            see="""
                ValueError: line 3 of scores.csv cannot be read: the value of team is missing, and its type str excludes None
                  at step 'Read' (game.py:7)
                  hint: declare team: str | None, pass keep_default_na=False, which reads an empty field as '', or pass rejects=True, which keeps such records apart
                """,
            files={"scores.csv": "team,points\nred,\n,3\n"},
            on_spark=True,
        ),
        Row(
            "a column of CSV that does not exist",
            write="""
                p | "Read" >> beam.io.ReadFromCsv("scores.csv", usecols=["day"]) | beam.Map(print)
                p.run()
                """,
            see="""
                ValueError: csv scores.csv has no column 'day'
                  at step 'Read' (game.py:1)
                  hint: The columns are: team, points
                """,
            files={"scores.csv": "team,points\nred,3\n"},
            on_spark=True,
        ),
        Row(
            "an encoding that does not exist",
            write="""
                p | "Read" >> beam.io.ReadFromCsv("scores.csv", encoding="latin-99") | beam.Map(print)
                p.run()
                """,
            see="""
                penstock.error.RunnerError: Spark does not know the encoding latin-99
                  at step 'Read' (game.py:1)
                  hint: use one that it knows: utf-8, iso-8859-1, us-ascii, utf-16, utf-16be, utf-16le or utf-32
                """,
            files={"scores.csv": "team,points\nred,3\n"},
            on_spark=True,
        ),
        Row(
            "a line that is not JSON",
            write="""
                p | "Read" >> beam.io.ReadFromJson("scores.json") | beam.Map(print)
                p.run()
                """,
            see="""
                ValueError: line 2 of scores.json cannot be read: the record is not JSON (Expecting value at column 10)
                  at step 'Read' (game.py:1)
                  hint: each line is one JSON object; with lines=False each file is a list of objects; or pass rejects=True, which keeps such records apart
                """,
            files={"scores.json": '{"team": "red"}\n{"team": \n'},
            on_spark=True,
        ),
        Row(
            "a field of JSON whose declared type excludes None",
            write="""
                from typing import NamedTuple

                class Score(NamedTuple):
                    team: str
                    points: float

                p | "Read" >> beam.io.ReadFromJson("scores.json").with_output_types(Score) | beam.Map(print)
                p.run()
                """,
            see="""
                ValueError: line 2 of scores.json cannot be read: the value of points is missing, and its type float excludes None
                  at step 'Read' (game.py:7)
                  hint: declare points: float | None, or pass rejects=True, which keeps such records apart
                """,
            files={"scores.json": '{"team": "red", "points": 1}\n{"team": "blue"}\n'},
            on_spark=True,
        ),
        Row(
            "unusual JSON",
            write=r"""
                from penstock.io import WriteToMemory

                found = []
                p | "Read" >> beam.io.ReadFromJson("scores.json") | WriteToMemory(found)
                p.run()
                print(*found, sep="\n")
                """,
            see="""
                Row(a=2, b=None)
                Row(a=None, b=nan)
                """,
            files={"scores.json": b'\xef\xbb\xbf{"a": 1, "a": 2}\n\n{"b": NaN, "a": null}\n'},
            on_spark=True,
        ),
        Row(
            "a record of CSV with one field too many, which Spark reads",
            write="""
                import os

                scores = p | "Read" >> beam.io.ReadFromSpark("csv", os.path.abspath("scores.csv"), header=True)
                scores | beam.Map(print)
                p.run()
                """,
            see="""
                penstock.error.RunnerError: /data/scores.csv has a record that does not fit the columns: a field is missing or too many, or is not of its type
                  at step 'Read' (game.py:3)
                  hint: correct the file or the columns; with the option mode='PERMISSIVE', Spark truncates such records or fills them
                """,
            files={"scores.csv": "team,points\nred,3\nblue,4,5\n"},
            on_spark=True,
        ),
        Row(
            "a Parquet file that is not one",
            write="""
                p | "Read" >> beam.io.ReadFromParquet("scores.parquet") | beam.Map(print)
                p.run()
                """,
            see="""
                penstock.error.RunnerError: /data/scores.parquet is damaged or incomplete
                  at step 'Read' (game.py:1)
                  hint: replace the file with a complete one; if a program is still writing it, wait until it is done
                """,
            files={"scores.parquet": "team,points\n"},
            on_spark=True,
        ),
        Row(
            "an empty Parquet file",
            write="""
                p | "Read" >> beam.io.ReadFromParquet("scores.parquet") | beam.Map(print)
                p.run()
                """,
            see="""
                penstock.error.RunnerError: the files are empty, so they have no schema
                  at step 'Read' (game.py:1)
                  hint: write the files again, or give a pattern without them
                """,
            files={"scores.parquet": ""},
            on_spark=True,
        ),
        Row(
            "a Parquet column that does not exist",
            write="""
                import pyarrow
                import pyarrow.parquet

                pyarrow.parquet.write_table(pyarrow.table({"team": ["red"]}), "scores.parquet")
                p | "Read" >> beam.io.ReadFromParquet("scores.parquet", columns=["points"]) | beam.Map(print)
                p.run()
                """,
            see="""
                ValueError: the files have no columns points
                  at step 'Read' (game.py:5)
                  hint: they have team
                """,
            on_spark=True,
        ),
        Row(
            "a Parquet column of a type that no reader supports",
            write="""
                import pyarrow
                import pyarrow.parquet

                keys = pyarrow.ExtensionArray.from_storage(pyarrow.uuid(), pyarrow.array([bytes(16)], pyarrow.binary(16)))
                pyarrow.parquet.write_table(pyarrow.table({"key": keys}), "scores.parquet")
                p | "Read" >> beam.io.ReadFromParquet("scores.parquet") | beam.Map(print)
                p.run()
                """,
            see="""
                penstock.error.UnsupportedByRunner: the column key has a type that no reader supports: extension<arrow.uuid> in scores.parquet
                  at step 'Read' (game.py:6)
                  hint: leave it out with columns=[...], or write the column again with another type, such as string
                """,
            on_spark=True,
        ),
        Row(
            "a Parquet column of a type that no reader supports, in a file that a collection names",
            write="""
                import pyarrow
                import pyarrow.parquet

                keys = pyarrow.ExtensionArray.from_storage(pyarrow.uuid(), pyarrow.array([bytes(16)], pyarrow.binary(16)))
                pyarrow.parquet.write_table(pyarrow.table({"key": keys}), "scores.parquet")
                p | beam.Create(["scores.parquet"]) | "Read" >> beam.io.ReadAllFromParquet() | beam.Map(print)
                p.run()
                """,
            see="""
                penstock.error.UnsupportedByRunner: the column key has a type that no reader supports: extension<arrow.uuid> in scores.parquet
                  at step 'Read/ReadAllFiles' (game.py:6)
                  hint: leave it out with columns=[...], or write the column again with another type, such as string
                """,
            on_spark=True,
        ),
        Row(
            "a time that Python's datetime lacks",
            write="""
                import pyarrow
                import pyarrow.parquet

                times = pyarrow.array([1 << 60], pyarrow.timestamp("us", "UTC"))
                pyarrow.parquet.write_table(pyarrow.table({"at": times}), "visits.parquet")
                p | "Read" >> beam.io.ReadFromParquet("visits.parquet") | beam.Map(print)
                p.run()
                """,
            see="""
                ValueError: a value of the column at is outside the range of Python for the type timestamp[us, tz=UTC] [while running 'Read' (game.py:6)]
                  in the data that is read
                  hint: leave the column out, or correct what writes it: years are from 1 to 9999
                """,
            on_spark=True,
        ),
        Row(
            "a Parquet file with two columns of one name",
            write="""
                import pyarrow
                import pyarrow.parquet

                table = pyarrow.table([["red"], [3]], ["team", "team"])
                pyarrow.parquet.write_table(table, "scores.parquet")
                p | "Read" >> beam.io.ReadFromParquet("scores.parquet") | beam.Map(print)
                p.run()
                """,
            see="""
                ValueError: scores.parquet has the columns team twice
                  at step 'Read' (game.py:6)
                  hint: write the file again with other names
                """,
            on_spark=True,
        ),
        Row(
            "an Avro file that is not one",
            write="""
                from penstock.io.avroio import ReadFromAvro

                p | "Read" >> ReadFromAvro("scores.avro") | beam.Map(print)
                p.run()
                """,
            see="""
                ValueError: scores.avro is not an Avro file, or it is damaged
                  at step 'Read' (game.py:3)
                  hint: delete it, write it again, or give a pattern without it
                """,
            files={"scores.avro": "team,points\n"},
            on_spark=True,
        ),
        Row(
            "a Spark format that does not exist",
            write="""
                p | "Read" >> beam.io.ReadFromSpark("parket", "scores") | beam.Map(print)
                p.run()
                """,
            see="""
                penstock.error.RunnerError: Spark has no format parket
                  at step 'Read' (game.py:1)
                  hint: correct the name, or give Spark the package of the format: --spark_conf=spark.jars.packages=...
                """,
            on_spark=True,
        ),
    ),
)
