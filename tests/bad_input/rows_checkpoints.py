"""Bad input: checkpoints."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "Checkpoints",
    "",
    (
        Row(
            "a plan that is truncated",
            write="""
                from penstock.testing.test_stream import TestStream

                stream = beam.Pipeline(checkpoint_location="state")
                windows = beam.WindowInto(beam.window.FixedWindows(60))
                stream | TestStream().add_elements([("ann", 1)]) | windows | "Sums" >> beam.CombinePerKey(sum) | beam.Map(print)
                stream.run()
                """,
            see="""
                ValueError: plan-1.json is not the plan of a checkpoint (it is not JSON)
                  in file:///data/state
                  hint: restore the file, or start again in another folder
                """,
            files={"state/plan-1.json": '{"format": 1, "penstock": "0.1'},
            on_spark=True,
        ),
        Row(
            "a file of Spark that is empty",
            write="""
                from pathlib import Path
                from penstock.testing.test_stream import TestStream

                def stream():
                    stream = beam.Pipeline(checkpoint_location="state")
                    windows = beam.WindowInto(beam.window.FixedWindows(60))
                    stream | TestStream().add_elements([("ann", 1)]) | windows | "Sums" >> beam.CombinePerKey(sum) | beam.Map(str)
                    return stream

                stream().run().wait_until_finish()
                # As if the machine had lost its power.
                Path("state/spark/metadata").write_text("")
                Path("state/spark/.metadata.crc").unlink(missing_ok=True)
                Path("state/ended.json").unlink()
                stream().run()
                """,
            see="""
                ValueError: the checkpoint is damaged: Spark's file metadata cannot be read (it is empty)
                  in the checkpoint file:///data/state/spark
                  hint: restore the folder from a copy, or start again with another checkpoint_location
                """,
            on_spark=True,
        ),
        Row(
            "a plan of a later version",
            write="""
                from penstock.testing.test_stream import TestStream

                stream = beam.Pipeline(checkpoint_location="state")
                windows = beam.WindowInto(beam.window.FixedWindows(60))
                stream | TestStream().add_elements([("ann", 1)]) | windows | "Sums" >> beam.CombinePerKey(sum) | beam.Map(print)
                stream.run()
                """,
            see="""
                ValueError: penstock 9.0 wrote the plan of a checkpoint, in the format 99; penstock 0.1.0 reads the format 1
                  in file:///data/state
                  hint: continue with the newer penstock
                """,
            files={"state/plan-1.json": '{"format": 99, "penstock": "9.0"}'},
            on_spark=True,
        ),
        Row(
            "a plan with other types",
            write="""
                from penstock.testing.test_stream import TestStream

                stream = beam.Pipeline(checkpoint_location="state")
                windows = beam.WindowInto(beam.window.FixedWindows(60))
                stream | TestStream().add_elements([("ann", 1)]) | windows | "Sums" >> beam.CombinePerKey(sum) | beam.Map(print)
                stream.run()
                """,
            see="""
                ValueError: plan-1.json is not the plan of a checkpoint (clock, heartbeat, id, folder, sources, levels, steps, sinks, dropped, shards, parallelism, since, inputs, planned, before)
                  in file:///data/state
                  hint: restore the file, or start again in another folder
                """,
            files={
                "state/plan-1.json": '{"format": 1, "penstock": "0.1.0", "mode": "streaming", "sources": 5}'
            },
            on_spark=True,
        ),
        Row(
            "a folder that is not a checkpoint",
            write="""
                from penstock.testing.test_stream import TestStream

                stream = beam.Pipeline(checkpoint_location="state")
                windows = beam.WindowInto(beam.window.FixedWindows(60))
                stream | TestStream().add_elements([("ann", 1)]) | windows | "Sums" >> beam.CombinePerKey(sum) | beam.Map(print)
                stream.run()
                """,
            see="""
                ValueError: the folder is not a penstock checkpoint: it holds notes.txt, and no plan
                  in file:///data/state
                  hint: name an empty folder, or a folder that does not exist yet
                """,
            files={"state/notes.txt": "milk, bread"},
            on_spark=True,
        ),
        Row(
            "a file as a checkpoint",
            write="""
                from penstock.testing.test_stream import TestStream

                stream = beam.Pipeline(checkpoint_location="state")
                windows = beam.WindowInto(beam.window.FixedWindows(60))
                stream | TestStream().add_elements([("ann", 1)]) | windows | "Sums" >> beam.CombinePerKey(sum) | beam.Map(print)
                stream.run()
                """,
            see="""
                ValueError: file:///data/state is a file
                  at game.py:6
                  hint: name a folder, or a path that does not exist yet
                """,
            files={"state": "milk, bread"},
            on_spark=True,
        ),
        Row(
            "a checkpoint that anyone can write to",
            write="""
                import os

                os.chmod("state", 0o777)
                from penstock.testing.test_stream import TestStream

                stream = beam.Pipeline(checkpoint_location="state")
                windows = beam.WindowInto(beam.window.FixedWindows(60))
                stream | TestStream().add_elements([("ann", 1)]) | windows | "Sums" >> beam.CombinePerKey(sum) | beam.Map(print)
                stream.run()
                """,
            see="""
                penstock.error.RunnerError: anyone on this machine can write to the checkpoint /data/state, whose content can run code as you
                  at game.py:9
                  hint: if you trust its content, run: chmod -R go-rwx /data/state; or start in a new folder
                """,
            files={"state/plan-1.json": "{}"},
            on_spark=True,
        ),
    ),
)
