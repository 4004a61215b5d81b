"""No option is accepted and ignored in silence: it has its effect, is refused, or is named in a warning."""

import copy
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as beam
from penstock.options import checks, ignored
from penstock.options.base import list_option_classes, parser_of, render_help
from penstock.options.checks import check_given
from penstock.options.pipeline_options import (
    GoogleCloudOptions,
    OptionsContext,
    PipelineOptions,
    SparkOptions,
    WorkerOptions,
)
from penstock.runners.runner import PipelineRunner
from penstock_spark.runner import SparkRunner

pytestmark = pytest.mark.usefixtures("only_lasting_options")


@pytest.fixture
def warnings_of(caplog):
    """What `check_given` warns of; each warning comes once in a process, so what was said before is forgotten."""

    def told(options):
        checks._warn_of_unknown.cache_clear()
        checks._warn_of_no_effect.cache_clear()
        caplog.clear()
        check_given(options)
        assert all(record.levelno == logging.WARNING for record in caplog.records)
        return [record.getMessage() for record in caplog.records]

    return told


@pytest.mark.parametrize(
    ("flag", "meant"),
    [
        ("--checkpoint_locatoin=x", "did you mean --checkpoint_location?"),
        ("--checkpoint", "did you mean --checkpoint_location?"),
        ("--checkpointLocation=x", "did you mean --checkpoint_location?"),
        ("--checkpoint-location=x", "did you mean --checkpoint_location?"),
        ("--CHECKPOINT_LOCATION=x", "did you mean --checkpoint_location?"),
        ("--show-elements-in-errors", "did you mean --show_elements_in_errors?"),
        ("--no-wait-until-finish", "did you mean --no_wait_until_finish?"),
        ("--spark_confs=a=b", "did you mean --spark_conf?"),
        ("--spark.executor.memory=4g", "write --spark_conf=spark.executor.memory=value"),
        ("--shufle=4", None),
        ("--shuffle_partition=4", "did you mean --shuffle_partitions?"),
        ("--trigger_intervall=4", "did you mean --trigger_interval?"),
        ("--penstock_speed=4", "run the program with --help"),
        ("--sparkling_water", None),
        ("--model=a.bin", None),
        ("--mod=batch", "did you mean --mode?"),
        ("--mdoe=batch", "did you mean --mode?"),
        ("--steaming", "did you mean --streaming?"),
        ("--aplication_name=x", None),
        ("--app_nmae=x", "did you mean --app_name?"),
        ("--prject=x", "did you mean --project?"),
        ("--events=3", None),
        ("--line=3", None),
    ],
)
def test_a_mistyped_option_of_ours_is_refused_with_the_nearest_one(flag, meant, warnings_of):
    if meant is None:
        assert len(warnings_of(PipelineOptions([flag]))) == 1
        return
    with pytest.raises(ValueError, match="is not an option") as caught:
        check_given(PipelineOptions([flag]))
    assert flag.partition("=")[0] in str(caught.value)
    assert meant in str(caught.value)


@pytest.mark.parametrize("flag", ["--checkpoint_every=9", "--shuffle_buffer=9", "--spark_home=/opt"])
def test_a_programs_own_flag_that_begins_like_ours_is_refused_with_the_way_to_keep_it(flag):
    with pytest.raises(ValueError, match="pass on only what your parser leaves"):
        check_given(PipelineOptions([flag]))


@pytest.fixture
def unread(caplog, monkeypatch):
    """The flags that a new pipeline says nothing reads, for a command line; each warning comes once in a process."""

    def told(flags, **arguments):
        checks._warn_of_unread.cache_clear()
        caplog.clear()
        monkeypatch.setattr("sys.argv", ["game.py", *flags])
        beam.Pipeline(**arguments)
        return [record.getMessage() for record in caplog.records]

    return told


def test_flags_of_a_command_line_that_no_pipeline_reads_are_named_at_its_line(unread):
    [told] = unread(["--live_port=4555", "--mode", "batch", "--mine", "--drain_on_signal"])
    what, where, hint = told.splitlines()
    assert what.endswith("these flags have no effect: --live_port, --mode, --drain_on_signal")
    assert where.strip().startswith("at test_given_options.py:")
    assert "Pipeline(options=PipelineOptions())" in hint


@pytest.mark.parametrize(
    ("flags", "arguments"),
    [
        ([], {}),
        (["--mine", "x", "-n", "2"], {}),
        (["--mode=batch"], {"mode": "batch"}),
        (["--mode=batch"], {"argv": []}),
        (["--mode=batch"], {"argv": ["--mode=streaming"]}),
    ],
    ids=["none", "the program's own", "an argument says it", "read and left out", "read by the program"],
)
def test_a_pipeline_is_silent_where_the_program_has_read_its_flags(flags, arguments, unread):
    assert unread(flags, **arguments) == []


def test_options_of_the_command_line_read_it(unread, monkeypatch):
    monkeypatch.setattr("sys.argv", ["game.py", "--mode=streaming"])
    assert unread(["--mode=streaming"], options=PipelineOptions()) == []


def test_what_no_class_knows_is_listed_once_without_its_values(warnings_of, caplog):
    options = PipelineOptions(
        ["--inptu=secret", "--other", "secret", "more", "-x", "--mode=batch", "-3"], nonsense=1
    )
    [told] = warnings_of(options)
    assert told.endswith(": --inptu, --other, more, -x, -3, --nonsense")
    check_given(options)
    assert len(caplog.records) == 1


def test_the_nearest_option_is_named_in_the_warning(warnings_of):
    [told] = warnings_of(PipelineOptions(["--events=x"]))
    assert "--events (did you mean --events_per_batch?)" in told


def test_a_mistyped_argument_of_a_pipeline_is_refused_in_three_parts():
    with pytest.raises(ValueError, match=r"--mod is not an option\n  at .*\n  hint: did you mean --mode\?"):
        check_given(PipelineOptions(mod="batch"))


def test_options_of_a_class_that_is_defined_later_and_of_a_block_are_known(warnings_of):
    options = PipelineOptions(["--late_team=blue"])
    assert len(warnings_of(options)) == 1

    class LateOptions(PipelineOptions):
        @classmethod
        def _add_argparse_args(cls, parser):
            parser.add_argument("--late_team")
            parser.add_argument("--spark_level", type=int)
            parser.add_argument("--zone", default="here")

    assert warnings_of(options) == []
    assert warnings_of(PipelineOptions(["--spark_level=3", "--zone=there"])) == []
    with OptionsContext(spark_level=9):
        assert warnings_of(PipelineOptions([])) == []
    with OptionsContext(spark_levle=9), pytest.raises(ValueError, match="did you mean --spark_level"):
        check_given(PipelineOptions([]))


def test_options_of_other_systems_are_read_and_a_run_says_once_that_they_have_no_effect(warnings_of):
    options = PipelineOptions(["--project=games", "--region=x", "--num_workers=5", "--no_use_public_ips"])
    assert options.view_as(GoogleCloudOptions).project == "games"
    assert options.view_as(WorkerOptions).use_public_ips is False
    [told] = warnings_of(options)
    assert "--project, --region (--app_name names a run" in told
    assert "--num_workers" in told
    assert "--no_use_public_ips" in told
    assert "--use_public_ips" not in told
    assert "games" not in told


@pytest.mark.parametrize("how", ["attribute", "keyword"])
def test_a_value_without_effect_is_named_however_it_was_set(how, warnings_of):
    options = PipelineOptions([], **({"job_name": "nightly"} if how == "keyword" else {}))
    if how == "attribute":
        options.view_as(GoogleCloudOptions).job_name = "nightly"
    [told] = warnings_of(options)
    assert "--job_name" in told


def test_defaults_and_options_with_an_effect_are_not_mentioned(warnings_of):
    flags = ["--mode=batch", "--save_main_session", "--pickle_library=cloudpickle", "--job_port=0"]
    assert warnings_of(PipelineOptions(flags, spark=None)) == []


def flags_of(options_class, parser):
    """Flags, name, default and number of values of each option of a class; help and choices apart."""
    options_class._add_argparse_args(parser)
    defaults = vars(parser.parse_known_args([])[0])
    return {
        tuple(sorted(action.option_strings)): (
            action.dest,
            defaults.get(action.dest),
            action.nargs,
            action.const,
        )
        for action in parser._actions
        if action.dest != "help"
    }


@pytest.mark.parametrize("name", [name for name in vars(ignored) if name.endswith("Options")][1:])
def test_options_of_other_systems_are_those_of_beam(name):
    theirs = pytest.importorskip("apache_beam.options.pipeline_options")
    ours = getattr(ignored, name)
    expected = flags_of(getattr(theirs, name), theirs._BeamArgumentParser(allow_abbrev=False))
    assert flags_of(ours, parser_of([])) == expected
    assert all(option.effect for option in parser_of([ours]).records())


def test_every_class_of_options_of_beam_is_here():
    theirs = pytest.importorskip("apache_beam.options.pipeline_options")
    beams = {
        cls.__name__ for cls in theirs.PipelineOptions.__subclasses__() if cls.__module__ == theirs.__name__
    }
    assert len(beams) > 20
    assert beams <= {*(cls.__name__ for cls in list_option_classes()), "SparkRunnerOptions"}


def test_lists_without_effect_are_split_as_in_beam():
    options = PipelineOptions(["--dataflow_service_options=a,b=1", "--label=x", "--labels=y"])
    cloud = options.view_as(GoogleCloudOptions)
    assert (cloud.dataflow_service_options, cloud.labels) == (["a", "b=1"], ["x", "y"])


def test_help_shows_the_programs_options_then_ours_with_what_they_mean_and_none_without_effect(capsys):
    class HelpfulOptions(PipelineOptions):
        """What the game needs (a docstring)."""

        @classmethod
        def _add_argparse_args(cls, parser):
            parser.add_argument("--helpful_team", help="The team to watch.")

    for flags in (["--help"], ["-h"], ["--mode=batch", "--help"]):
        with pytest.raises(SystemExit) as ended:
            PipelineOptions(flags)
        assert ended.value.code == 0
        assert capsys.readouterr().out.rstrip() == render_help()
    text = render_help()
    assert "The team to watch." in text
    assert text.index("HelpfulOptions: What the game needs") < text.index("\nSparkOptions: ")
    ours = parser_of([SparkOptions])
    own = [option for option in ours.records() if option.effect is None]
    assert len(own) > 20
    assert all(option.spellings()[0] in text and option.help for option in own)
    assert "--project" not in text


@pytest.mark.parametrize("taker", [beam.Pipeline, SparkRunner])
def test_an_unknown_keyword_is_refused_with_the_nearest_one_alone(taker):
    with pytest.raises(TypeError) as caught:
        taker(shuffle_partition=4)
    where, hint = str(caught.value).splitlines()[1:]
    assert where.startswith("  at test_given_options.py:")
    assert hint == "  hint: did you mean shuffle_partitions?"
    with pytest.raises(TypeError, match="--help shows all options"):
        taker(qqq=4)


@pytest.mark.parametrize("start", ["run", "explain"])
def test_a_pipeline_with_a_mistyped_option_does_not_start(start):
    pipeline = beam.Pipeline(options=PipelineOptions(["--spark_cnf=a=b"]))
    _ = pipeline | beam.Create([1])
    with pytest.raises(ValueError, match="did you mean --spark_conf"):
        getattr(pipeline, start)()


def test_a_run_does_not_say_that_the_session_is_left_out(caplog):
    class Runner(PipelineRunner):
        def run_pipeline(self, pipeline, options):
            return "run"

    assert beam.Pipeline(Runner(), spark=object()).run() == "run"
    pipeline = beam.Pipeline(spark=object())
    _ = pipeline | beam.Create([1])
    SparkRunner().compiled(pipeline.to_graph(), pipeline.options.view_as(SparkOptions))
    assert not caplog.records


def test_wrong_values_of_all_classes_are_refused_before_a_pipeline_starts():
    pipeline = beam.Pipeline(options=PipelineOptions(["--pickle_library=dill"]))
    _ = pipeline | beam.Create([1])
    with pytest.raises(ValueError, match="dill is not available"):
        pipeline.explain()


def test_a_warning_reaches_a_user_who_has_set_up_no_logging(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(
        "import penstock as beam\n"
        "from penstock.options.pipeline_options import PipelineOptions\n"
        "pipeline = beam.Pipeline(options=PipelineOptions())\n"
        "_ = pipeline | beam.Create([1])\n"
        "pipeline.explain()\n"
    )
    flags = ["--inptu=x", "--region=europe"]
    done = subprocess.run([sys.executable, program, *flags], capture_output=True, text=True, check=True)
    assert "--inptu" in done.stderr
    assert "--region" in done.stderr


def test_lists_and_dicts_of_one_pipeline_are_not_those_of_the_next():
    first, second = PipelineOptions([]), PipelineOptions([])
    for name in ("gcp_oauth_scopes", "direct_test_splits"):
        changed = first.get_all_options()[name]
        before = copy.copy(changed)
        changed.clear() if isinstance(changed, dict) else changed.append("more")
        assert second.get_all_options()[name] == before
    first.view_as(GoogleCloudOptions).gcp_oauth_scopes.append("more")
    assert "more" not in second.view_as(GoogleCloudOptions).gcp_oauth_scopes


def test_a_default_that_is_given_as_text_is_a_default():
    class Sizes(PipelineOptions):
        @classmethod
        def _add_argparse_args(cls, parser):
            parser.add_argument("--size_of_test", type=int, default="4")

    options = Sizes([])
    assert options.size_of_test == 4
    assert "size_of_test" not in options.get_all_options(drop_default=True)
    assert Sizes(["--size_of_test=5"]).get_all_options(drop_default=True)["size_of_test"] == 5


def test_the_flags_of_a_users_class_may_change_from_pipeline_to_pipeline(monkeypatch):
    class Place(PipelineOptions):
        @classmethod
        def _add_argparse_args(cls, parser):
            parser.add_argument("--place_of_test", default=os.environ.get("PLACE_OF_TEST"))

    monkeypatch.setenv("PLACE_OF_TEST", "here")
    assert PipelineOptions([]).view_as(Place).place_of_test == "here"
    monkeypatch.setenv("PLACE_OF_TEST", "there")
    assert PipelineOptions([]).view_as(Place).place_of_test == "there"
