"""Bad input: options."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "Options",
    "",
    (
        Row(
            "an argument that is misspelled",
            write="""
                beam.Pipeline(shuffle_partition=4)
                """,
            see="""
                TypeError: Pipeline has no argument or option 'shuffle_partition'
                  at game.py:1
                  hint: did you mean shuffle_partitions?
                """,
        ),
        Row(
            "an argument without its last word",
            write="""
                beam.Pipeline(checkpoint="/state")
                """,
            see="""
                TypeError: Pipeline has no argument or option 'checkpoint'
                  at game.py:1
                  hint: did you mean checkpoint_location?
                """,
        ),
        Row(
            "a flag that is misspelled",
            write="""
                beam.Pipeline(argv=["--checkpoint=/state"]).run()
                """,
            see="""
                ValueError: --checkpoint is not an option
                  at game.py:1
                  hint: did you mean --checkpoint_location? Run the program with --help to see all options; if it is your own flag, pass on only what your parser leaves: parse_known_args()[1]
                """,
        ),
        Row(
            "a flag with capitals",
            write="""
                beam.Pipeline(argv=["--Master=local"]).run()
                """,
            see="""
                ValueError: --Master is not an option
                  at game.py:1
                  hint: did you mean --master? Run the program with --help to see all options; if it is your own flag, pass on only what your parser leaves: parse_known_args()[1]
                """,
        ),
        Row(
            "a property of Spark's as a flag",
            write="""
                beam.Pipeline(argv=["--spark.ui.enabled=true"]).run()
                """,
            see="""
                ValueError: --spark.ui.enabled is not an option
                  at game.py:1
                  hint: write --spark_conf=spark.ui.enabled=value
                """,
        ),
        Row(
            "a flag without its value",
            write="""
                beam.Pipeline(argv=["--mode"]).run()
                """,
            see="""
                game.py: argument --mode: expected one argument
                  hint: game.py --help shows all options
                """,
        ),
        Row(
            "a flag with a value of another type",
            write="""
                beam.Pipeline(argv=["--shuffle_partitions=many"]).run()
                """,
            see="""
                game.py: argument --shuffle_partitions: invalid int value: 'many'
                  hint: game.py --help shows all options
                """,
        ),
        Row(
            "a value for a flag that takes none",
            write="""
                beam.Pipeline(argv=["--take_over=yes"]).run()
                """,
            see="""
                game.py: argument --take_over: it takes no value, but got 'yes'
                  hint: game.py --help shows all options
                """,
        ),
        Row(
            "flags in one string",
            write="""
                beam.Pipeline(argv="--mode=batch")
                """,
            see="""
                ValueError: Parameter argv, if specified, must be a list. Received: '--mode=batch'
                  at game.py:1
                  hint: write argv=['--name=value']
                """,
        ),
        Row(
            "a number among the flags",
            write="""
                beam.Pipeline(argv=["--shuffle_partitions", 8])
                """,
            see="""
                TypeError: flags are strings, but one of them is 8
                  at game.py:1
                  hint: write '8'
                """,
        ),
        Row(
            "a dictionary as options",
            write="""
                beam.Pipeline(options={"mode": "batch"})
                """,
            see="""
                ValueError: Parameter options, if specified, must be of type PipelineOptions. Received: {'mode': 'batch'}
                  at game.py:1
                  hint: PipelineOptions.from_dictionary makes options of a dictionary
                """,
        ),
        Row(
            "a list instead of a dictionary",
            write="""
                from penstock.options.pipeline_options import PipelineOptions

                PipelineOptions.from_dictionary(["mode", "batch"])
                """,
            see="""
                TypeError: from_dictionary takes a dictionary, not a list
                  at game.py:3
                  hint: write from_dictionary({'mode': 'batch'})
                """,
        ),
        Row(
            "an option that a view does not have",
            write="""
                from penstock.options.pipeline_options import PipelineOptions, SparkOptions

                PipelineOptions([]).view_as(SparkOptions).shuffle_partition = 8
                """,
            see="""
                penstock.options.base.NoSuchOption: 'SparkOptions' object has no attribute 'shuffle_partition'
                  at game.py:3
                  hint: did you mean shuffle_partitions?
                """,
        ),
        Row(
            "an option of another view",
            write="""
                from penstock.options.pipeline_options import PipelineOptions, SparkOptions

                PipelineOptions([]).view_as(SparkOptions).runner
                """,
            see="""
                penstock.options.base.NoSuchOption: 'SparkOptions' object has no attribute 'runner'
                  at game.py:3
                  hint: write options.view_as(StandardOptions).runner
                """,
        ),
        Row(
            "no partitions",
            write="""
                beam.Pipeline(shuffle_partitions=0).run()
                """,
            see="""
                ValueError: shuffle_partitions is 0
                  at game.py:1
                  hint: use an integer above 0
                """,
        ),
        Row(
            "a number as a string",
            write="""
                beam.Pipeline(shuffle_partitions="8").run()
                """,
            see="""
                ValueError: shuffle_partitions is '8'
                  at game.py:1
                  hint: use an integer
                """,
        ),
        Row(
            "True as a number",
            write="""
                beam.Pipeline(trigger_interval=True).run()
                """,
            see="""
                ValueError: trigger_interval is True
                  at game.py:1
                  hint: use a number
                """,
        ),
        Row(
            "not a number as an interval",
            write="""
                beam.Pipeline(trigger_interval=float("nan")).run()
                """,
            see="""
                ValueError: trigger_interval is nan
                  at game.py:1
                  hint: use seconds: more than 0, less than a day
                """,
        ),
        Row(
            "a string for a switch",
            write="""
                beam.Pipeline(fast_start="no").run()
                """,
            see="""
                ValueError: fast_start is 'no'
                  at game.py:1
                  hint: use True or False
                """,
        ),
        Row(
            "a string for a list",
            write="""
                beam.Pipeline(drop_state="Sums").run()
                """,
            see="""
                ValueError: drop_state is 'Sums'
                  at game.py:1
                  hint: use a list: ['Sums']
                """,
        ),
        Row(
            "a value that is not among the choices",
            write="""
                beam.Pipeline(type_check_strictness="SOME").run()
                """,
            see="""
                ValueError: type_check_strictness is 'SOME'
                  at game.py:1
                  hint: use one of ALL_REQUIRED, DEFAULT_TO_ANY
                """,
        ),
        Row(
            "a mode that does not exist",
            write="""
                beam.Pipeline(mode="stream").run()
                """,
            see="""
                ValueError: mode is 'stream'
                  at game.py:1
                  hint: did you mean 'streaming'?
                """,
        ),
        Row(
            "an optimisation that does not exist",
            write="""
                beam.Pipeline(without=["nativ_sums"]).run()
                """,
            see="""
                ValueError: without names 'nativ_sums', which is not an optimisation
                  at game.py:1
                  hint: did you mean 'native_sums'?
                """,
        ),
        Row(
            "an empty checkpoint location",
            write="""
                import os

                beam.Pipeline(checkpoint_location=os.environ.get("NO_SUCH_VARIABLE", "")).run()
                """,
            see="""
                ValueError: checkpoint_location is empty
                  at game.py:3
                  hint: give checkpoint_location a value, or leave it out
                """,
        ),
        Row(
            "a takeover of nothing",
            write="""
                beam.Pipeline(take_over=True).run()
                """,
            see="""
                ValueError: take_over is set without a checkpoint_location
                  at game.py:1
                  hint: name the folder of the checkpoint to take over
                """,
        ),
        Row(
            "a runner that does not exist",
            write="""
                beam.Pipeline("DataflowRunner").run()
                """,
            see="""
                ValueError: Unexpected pipeline runner: DataflowRunner
                  at game.py:1
                  hint: the only runner is SparkRunner; DirectRunner is Spark on this machine
                """,
        ),
        Row(
            "a number as a runner",
            write="""
                beam.Pipeline(5)
                """,
            see="""
                TypeError: Runner 5 is not a PipelineRunner object or the name of a runner
                  at game.py:1
                  hint: leave it out
                """,
        ),
        Row(
            "an option that this runner cannot follow",
            write="""
                beam.Pipeline(setup_file="setup.py").run()
                """,
            see="""
                ValueError: the option setup_file is refused: this runner cannot follow it
                  at game.py:1
                  hint: send files with spark-submit --py-files, or install them where the workers are; see docs/running.md
                """,
        ),
        Row(
            "several wrong options",
            write="""
                beam.Pipeline(mode="stream", shuffle_partitions=-1).run()
                """,
            see="""
                ValueError: mode is 'stream'
                  at game.py:1
                  hint: did you mean 'streaming'?
                shuffle_partitions is -1
                  at game.py:1
                  hint: use an integer above 0
                """,
        ),
    ),
)
