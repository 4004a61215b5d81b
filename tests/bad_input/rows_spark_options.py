"""Bad input: spark's options."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "Spark's options",
    "",
    (
        Row(
            "properties in one string",
            write="""
                beam.Pipeline(spark_conf="spark.ui.enabled=true").run()
                """,
            see="""
                ValueError: spark_conf is of the type str
                  at game.py:1
                  hint: write spark_conf=['key=value'] or a dict
                """,
        ),
        Row(
            "a property without a value",
            write="""
                beam.Pipeline(spark_conf=["spark.ui.enabled"]).run()
                """,
            see="""
                ValueError: 'spark.ui.enabled' is not key=value
                  at game.py:1
                  hint: write spark.some.property=value
                """,
        ),
        Row(
            "properties that are not JSON",
            write="""
                beam.Pipeline(spark_conf=["{'spark.ui.enabled': true}"]).run()
                """,
            see="""
                ValueError: spark_conf has an object that is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)
                  at game.py:1
                  hint: write spark_conf=['key=value'] or a dict
                """,
        ),
        Row(
            "a property whose value is a dictionary",
            write="""
                beam.Pipeline(spark_conf={"spark.ui": {"enabled": True}}).run()
                """,
            see="""
                ValueError: the value of spark.ui in spark_conf is of the type dict
                  at game.py:1
                  hint: use a string, a number, True or False
                """,
        ),
        Row(
            "a property whose name is a number",
            write="""
                beam.Pipeline(spark_conf={5: True}).run()
                """,
            see="""
                ValueError: spark_conf has a property without a name: 5
                  at game.py:1
                  hint: write spark_conf={'spark.some.property': value}
                """,
        ),
        Row(
            "a number as properties",
            write="""
                beam.Pipeline(spark_conf=5).run()
                """,
            see="""
                ValueError: spark_conf is of the type int
                  at game.py:1
                  hint: write spark_conf=['key=value'] or a dict
                """,
        ),
        Row(
            "a file of properties that is missing",
            write="""
                beam.Pipeline(spark_conf_file="secrets.conf").run()
                """,
            see="""
                ValueError: the file of Spark properties secrets.conf cannot be read: No such file or directory
                  at game.py:1
                  hint: name a file like spark-defaults.conf
                """,
        ),
        Row(
            "a folder as a file of properties",
            write="""
                beam.Pipeline(spark_conf_file="conf").run()
                """,
            see="""
                ValueError: the file of Spark properties conf cannot be read: Is a directory
                  at game.py:1
                  hint: name a file like spark-defaults.conf
                """,
            files={"conf/spark.conf": ""},
        ),
        Row(
            "a file of properties that is not UTF-8",
            write="""
                beam.Pipeline(spark_conf_file="secrets.conf").run()
                """,
            see="""
                ValueError: the file of Spark properties secrets.conf cannot be read: it is not UTF-8
                  at game.py:1
                  hint: name a file like spark-defaults.conf
                """,
            files={"secrets.conf": b"spark.app.name \xff\n"},
        ),
        Row(
            "a number as the master",
            write="""
                beam.Pipeline(master=4).run()
                """,
            see="""
                ValueError: master is 4
                  at game.py:1
                  hint: use a string: '4'
                """,
        ),
        Row(
            "an empty master",
            write="""
                beam.Pipeline(master="").run()
                """,
            see="""
                ValueError: master is empty
                  at game.py:1
                  hint: give master a value, or leave it out
                """,
        ),
    ),
)
