"""Bad input: servers of Spark Connect."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "Servers of Spark Connect",
    "Each program names a server, which is the one in the row's name. All of these errors come within seconds.",
    (
        Row(
            "an address that does not begin with sc://",
            write="""
                beam.Pipeline(master="sc:localhost:15002").run()
                """,
            see="""
                penstock.error.RunnerError: 'sc:localhost:15002' is not the address of a Spark Connect server
                  in the option master, or in $SPARK_REMOTE
                  hint: write it as in sc://host:15002, or with options as in sc://host:443/;use_ssl=true;token=...
                """,
            server="closed",
        ),
        Row(
            "an address with a path",
            write="""
                beam.Pipeline(master="sc://localhost:15002/spark").run()
                """,
            see="""
                penstock.error.RunnerError: 'sc://localhost:15002/spark' is not the address of a Spark Connect server
                  in the option master, or in $SPARK_REMOTE
                  hint: write it as in sc://host:15002, or with options as in sc://host:443/;use_ssl=true;token=...
                """,
            server="closed",
        ),
        Row(
            "a server in the environment and another master in the program",
            write="""
                import os
                os.environ["SPARK_REMOTE"] = "sc://localhost:15002"
                try:
                    beam.Pipeline(master="local[2]").run()
                finally:
                    del os.environ["SPARK_REMOTE"]
                """,
            see="""
                penstock.error.RunnerError: the option master is 'local[2]', but $SPARK_REMOTE names the server 'sc://localhost:15002'
                  in the options of the pipeline
                  hint: leave out the option, or unset SPARK_REMOTE
                """,
            server="closed",
        ),
        Row(
            "a port at which nothing listens",
            write="""
                beam.Pipeline(master="sc://localhost:15002").run()
                """,
            see="""
                penstock.error.RunnerError: no Spark Connect server answers
                  in the session of localhost:15002
                  hint: check the address, that the server runs, and the network between; then run the program again (a stream continues from its checkpoint)
                """,
            server="closed",
        ),
        Row(
            "a server of another kind",
            write="""
                beam.Pipeline(master="sc://localhost:15002").run()
                """,
            see="""
                penstock.error.RunnerError: the program at this address is not a Spark Connect server, or has a different version of Spark
                  in the session of localhost:15002
                  hint: check the host and the port, which is 15002 for most servers
                """,
            server="is no server of Spark",
        ),
        Row(
            "a server of Spark 3.5",
            write="""
                beam.Pipeline(master="sc://localhost:15002").run()
                """,
            see="""
                penstock.error.UnsupportedByRunner: penstock runs on Spark 4.0 to 4.3, but this is Spark 3.5.6
                  in the Spark session
                  hint: use a cluster with one of these versions, and run pip install 'pyspark>=4.0,<4.4'
                """,
            server="Spark 3.5.6",
        ),
        Row(
            "a server of Spark 4.0",
            write="""
                with beam.Pipeline(master="sc://localhost:15002") as pipeline:
                    pipeline | beam.Create([1])
                """,
            see="""
                penstock.error.UnsupportedByRunner: with Spark Connect, penstock needs Spark 4.1 or newer on both sides, but the Spark Connect server is 4.0.5
                  in the Spark Connect session that the pipeline would run in
                  hint: use a server and a PySpark of Spark 4.1 or newer, or run without Spark Connect
                """,
            server="Spark 4.0.5",
        ),
        Row(
            "a server that asks for a token",
            write="""
                beam.Pipeline(master="sc://localhost:15002").run()
                """,
            see="""
                penstock.error.RunnerError: the Spark Connect server does not know who this program is
                  in the session of localhost:15002
                  hint: give the address a valid token, as in sc://host:443/;token=..., or set SPARK_CONNECT_AUTHENTICATE_TOKEN
                """,
            server="asks for a token",
        ),
        Row(
            "a server that does not permit it",
            write="""
                beam.Pipeline(master="sc://localhost:15002").run()
                """,
            see="""
                penstock.error.RunnerError: the Spark Connect server does not permit what the pipeline requests
                  in the session of localhost:15002
                  hint: ask the operator of the server for the permission, or run the pipeline with another server
                """,
            server="does not permit it",
        ),
        Row(
            "a session that the server has closed",
            write="""
                from pyspark.sql import SparkSession
                spark = SparkSession.builder.remote("sc://localhost:15002").getOrCreate()
                with beam.Pipeline(spark=spark) as pipeline:
                    pipeline | beam.Create([1])
                """,
            see="""
                penstock.error.RunnerError: the session of the Spark Connect server has ended: the server was restarted, or has closed it
                  at step 'Create' (game.py:4)
                  hint: stop the session that the program has made (spark.stop()) and make a new one, then run the program again (a stream continues from its checkpoint)
                """,
            server="has closed the session",
        ),
        Row(
            "values that are larger than a message",
            write="""
                with beam.Pipeline(master="sc://localhost:15002") as pipeline:
                    pipeline | beam.Create([bytes(1_000_000)] * 140)
                """,
            see="""
                penstock.error.RunnerError: what the program sends to the Spark Connect server, or gets from it, is larger than one message may be (128 MB, unless the server has another limit)
                  at step 'Create' (game.py:2)
                  hint: read large values from files instead of Create or a side input, or have the server start with a larger spark.connect.grpc.maxInboundMessageSize
                """,
            server="takes small messages",
        ),
        Row(
            "a checkpoint in a store that is not a disk",
            write="""
                with beam.Pipeline(
                    master="sc://localhost:15002", mode="streaming", checkpoint_location="hdfs:///scores"
                ) as pipeline:
                    pipeline | beam.Create([1])
                """,
            see="""
                penstock.error.UnsupportedByRunner: in a session of Spark Connect, this program and Spark do not both reach hdfs:///scores
                  in the Spark Connect session that the pipeline would run in
                  hint: name a folder on a disk or volume that this machine and the server share under the same path, such as /Volumes/catalog/schema/volume/folder
                """,
            server="has closed the session",
        ),
    ),
)
