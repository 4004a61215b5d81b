"""Options: flags, keyword arguments, views, and values known only at run time."""

import copy
import pickle
import sys

import pytest

from penstock.options.pipeline_options import (
    DebugOptions,
    OptionsContext,
    PipelineOptions,
    SetupOptions,
    SparkOptions,
    SparkRunnerOptions,
    StandardOptions,
    StreamingOptions,
    TypeOptions,
)
from penstock.options.pipeline_options_validator import PipelineOptionsValidator
from penstock.options.value_provider import (
    NestedValueProvider,
    RuntimeValueProvider,
    RuntimeValueProviderError,
    StaticValueProvider,
    check_accessible,
)
from penstock.pipeline import Pipeline


class GameOptions(PipelineOptions):
    @classmethod
    def _add_argparse_args(cls, parser):
        parser.add_argument("--game_team", default="red")
        parser.add_argument("--game_round", type=int, default=1)
        parser.add_argument("--game_names", action="append")
        parser.add_argument("--game_quiet", action="store_true")
        parser.add_argument("--option with space")


class NeedyOptions(PipelineOptions):
    @classmethod
    def _add_argparse_args(cls, parser):
        parser.add_argument("--needy_input", required=True)


def test_flags_reach_the_view_that_defines_them_and_unknown_ones_are_left_alone():
    options = PipelineOptions(
        ["--game_team=blue", "--project=p", "--num_workers", "5", "--option with space= a b"]
    )
    game = options.view_as(GameOptions)
    assert (game.game_team, game.game_round, game.game_quiet, game.game_names) == ("blue", 1, False, None)
    assert getattr(game, "option with space") == " a b"
    assert dir(game).count("game_team") == 1


def test_without_flags_the_programs_own_arguments_are_read(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["program", "--game_team=green"])
    assert GameOptions().game_team == "green"
    assert GameOptions([]).game_team == "red"


def test_keyword_arguments_win_over_flags():
    options = PipelineOptions(["--game_team=blue"], game_team="white")
    assert options.view_as(GameOptions).game_team == "white"
    assert options.get_all_options()["game_team"] == "white"


def test_views_share_values_also_those_set_later():
    options = PipelineOptions([])
    options.view_as(GameOptions).game_names = ["a"]
    options.view_as(GameOptions).game_names.append("b")
    assert options.view_as(StandardOptions).view_as(GameOptions).game_names == ["a", "b"]
    assert options.get_all_options()["game_names"] == ["a", "b"]


def test_a_view_has_only_its_own_options_and_says_where_others_are():
    options = PipelineOptions([])
    with pytest.raises(
        AttributeError, match=r"(?s)no attribute 'game_team'.*view_as\(GameOptions\).game_team"
    ):
        _ = options.game_team
    with pytest.raises(AttributeError, match="'StandardOptions' object has no attribute 'no_such'"):
        options.view_as(StandardOptions).no_such = 1
    with pytest.raises(TypeError, match="takes a class"):
        options.view_as(GameOptions([]))


@pytest.mark.parametrize("flags", ["--game_team=blue", {"game_team": "blue"}])
def test_flags_that_are_no_list_are_refused(flags):
    with pytest.raises(ValueError, match="from_dictionary"):
        PipelineOptions(flags)


def test_a_wrong_value_of_a_known_flag_ends_the_program(capsys):
    with pytest.raises(SystemExit):
        PipelineOptions(["--type_check_strictness=blah"]).view_as(TypeOptions)
    assert "invalid choice" in capsys.readouterr().err


def test_a_class_may_define_a_flag_of_another_anew_and_inherits_those_of_its_base():
    class LateGameOptions(GameOptions):
        @classmethod
        def _add_argparse_args(cls, parser):
            parser.add_argument("--game_team", default="black")

    assert LateGameOptions([]).game_team == "black"
    assert LateGameOptions(["--game_round=3"]).game_round == 3


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        ({"game_quiet": True}, ["--game_quiet"]),
        ({"game_quiet": False}, []),
        ({"pipeline_type_check": False}, ["--no_pipeline_type_check"]),
        ({"save_main_session": False}, ["--no_save_main_session"]),
        ({"game_names": ["a", "b"]}, ["--game_names=a", "--game_names=b"]),
        ({"spark_conf": {"a": 1}}, ['--spark_conf={"a": 1}']),
        ({"game_team": None}, []),
        ({"game_round": 3}, ["--game_round=3"]),
    ],
)
def test_a_dictionary_becomes_flags(given, flags):
    assert PipelineOptions.from_dictionary(given)._flags == flags


def test_get_all_options_can_drop_defaults_add_arguments_and_keep_unknown_ones():
    options = PipelineOptions(
        ["--game_round=2", "--odd", "--even", "x = y", "-s", "--extra=1", "--extra=2"], other=3
    )
    assert options.get_all_options(drop_default=True) == {"game_round": 2}
    kept = options.get_all_options(drop_default=True, retain_unknown_options=True)
    assert kept == {"game_round": 2, "odd": True, "even": "x = y", "s": True, "extra": "2", "other": 3}
    extra = options.get_all_options(
        add_extra_args_fn=lambda parser: parser.add_argument("--extra", action="append")
    )
    assert extra["extra"] == ["1", "2"]
    assert GameOptions(["--streaming"]).get_all_options(current_only=True).keys() >= {"game_team"}
    assert "streaming" not in GameOptions(["--streaming"]).get_all_options(current_only=True)


def test_what_is_left_out_is_logged_with_the_closest_known_flag(caplog):
    PipelineOptions(["--game_tean=x"], nonsense=1).get_all_options(display_warnings=True)
    assert "did you mean --game_team?" in caplog.text
    assert "['nonsense']" in caplog.text


def test_a_required_option_is_required_of_its_own_class_only(capsys):
    assert PipelineOptions([]).get_all_options()["needy_input"] is None
    with pytest.raises(SystemExit):
        NeedyOptions([])
    assert "--needy_input" in capsys.readouterr().err


@pytest.mark.parametrize(
    "make_copy", [copy.copy, copy.deepcopy, lambda options: pickle.loads(pickle.dumps(options))]
)
def test_options_can_be_copied_and_pickled(make_copy):
    options = make_copy(PipelineOptions(["--game_team=blue"], game_round=7))
    game = options.view_as(GameOptions)
    assert (game.game_team, game.game_round) == ("blue", 7)


def test_display_data_and_text_show_the_options():
    assert PipelineOptions(["--game_round=2"]).display_data() == {"game_round": 2}
    assert str(StreamingOptions([])) == "StreamingOptions(update_compatibility_version=None)"


def test_a_block_gives_defaults_to_the_options_made_in_it():
    @OptionsContext(game_team="white")
    def team():
        return PipelineOptions([]).view_as(GameOptions).game_team

    assert team() == "white"
    assert PipelineOptions([]).view_as(GameOptions).game_team == "red"
    with OptionsContext(game_round=9), OptionsContext(game_team="white"):
        augmented = OptionsContext.augment_options(GameOptions([], game_round=1))
    assert (augmented.game_round, augmented.game_team) == (9, "white")


@pytest.mark.parametrize(
    ("wanted", "change", "older"),
    [
        (None, "2.72.0", False),
        ("2.71.0", "2.72.0", True),
        ("2.72", "2.72.0", False),
        ("2.100.0", "2.72.0", False),
    ],
)
def test_compatibility_versions_compare_as_numbers(wanted, change, older):
    options = PipelineOptions([], update_compatibility_version=wanted)
    assert options.is_compat_version_prior_to(change) is older


def test_experiments_are_split_at_commas_added_and_looked_up():
    options = PipelineOptions(["--experiments=a,b=1", "--experiment=c=k=v,w"]).view_as(DebugOptions)
    assert options.experiments == ["a", "b=1", "c=k=v,w"]
    options.add_experiment("d")
    options.add_experiment("d")
    assert options.experiments.count("d") == 1
    assert [options.lookup_experiment(key) for key in ("a", "b", "d", "z")] == [True, "1", True, None]


def test_the_session_of_a_program_is_an_argument_and_not_a_flag():
    session = object()
    assert Pipeline(spark=session).options.view_as(SparkOptions).session() is session
    assert PipelineOptions([]).view_as(SparkOptions).session() is None


def test_spark_options_have_beams_name_and_flags_too():
    options = PipelineOptions(
        ["--spark_master_url=local[3]", "--spark_conf=a=b=c", '--spark_conf={"d": true}']
    )
    spark = options.view_as(SparkRunnerOptions)
    assert SparkRunnerOptions is SparkOptions
    assert spark.master_url() == "local[3]"
    assert spark.properties() == {"a": "b=c", "d": "true"}
    assert (spark.mode, spark.shuffle_partitions, spark.show_elements_in_errors) == (None, None, False)
    assert PipelineOptions([], spark_conf=["a=1"], master="x").view_as(SparkOptions).properties() == {
        "a": "1"
    }


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"mode": "turbo"}, "mode is 'turbo'"),
        ({"shuffle_partitions": 0}, "shuffle_partitions is 0"),
        ({"spark_conf": "a=b"}, "spark_conf is of the type str"),
        ({"spark_conf": ["a"]}, "'a' is not key=value"),
        ({"without": ["native_sums", "speed"]}, "without names 'speed'"),
        ({"experiments": "a"}, "experiments is a string"),
        ({"pickle_library": "dill"}, "dill is not available"),
        ({"type_check_additional": "all,most"}, "no feature 'most'"),
    ],
)
def test_the_validator_names_what_is_wrong_and_what_to_do(values, complaint):
    [error] = PipelineOptionsValidator(PipelineOptions([], **values)).validate()
    assert complaint in error
    assert "hint: " in error


def test_good_options_pass_the_validator():
    flags = ["--mode=streaming", "--shuffle_partitions=4", "--experiments=a", "--without=native_sums"]
    options = PipelineOptions(flags)
    assert PipelineOptionsValidator(options).validate() == []


def test_repeated_files_of_setup_make_lists():
    setup = PipelineOptions(["--file_to_stage=a", "--files_to_stage=b"]).view_as(SetupOptions)
    assert (setup.files_to_stage, setup.save_main_session, setup.extra_packages) == (["a", "b"], None, None)


@pytest.fixture
def runtime_options():
    yield RuntimeValueProvider.set_runtime_options
    RuntimeValueProvider.set_runtime_options(None)


def test_an_argument_may_be_a_value_that_comes_later(runtime_options):
    class TemplateOptions(PipelineOptions):
        @classmethod
        def _add_argparse_args(cls, parser):
            parser.add_value_provider_argument("--late_given")
            parser.add_value_provider_argument("--late_open", type=int, default=4)
            parser.add_value_provider_argument("late_positional")

    options = TemplateOptions(["--late_given", "hello"])
    assert isinstance(options.late_given, StaticValueProvider)
    assert options.late_given.get() == "hello"
    assert not options.late_open.is_accessible()
    with pytest.raises(RuntimeValueProviderError, match=r"(?s)option: late_open, type: int.*inside a DoFn"):
        options.late_open.get()
    runtime_options({"late_open": "6", "experiments": ["x"]})
    assert options.late_open.get() == 6
    assert RuntimeValueProvider.experiments == {"x"}
    runtime_options({})
    assert options.late_open.get() == 4
    assert "late_open" in options.get_all_options(drop_default=True)


def test_value_providers_compare_by_value():
    assert StaticValueProvider(int, "1") == StaticValueProvider(int, 1) == 1
    assert StaticValueProvider(int, 1) != StaticValueProvider(float, 1)
    assert len({StaticValueProvider(int, 1), StaticValueProvider(int, 1)}) == 1


def test_a_nested_provider_translates_once():
    calls = []
    nested = NestedValueProvider(StaticValueProvider(str, "a"), lambda text: calls.append(text) or text * 2)
    assert (nested.get(), nested.get(), calls) == ("aa", "aa", ["a"])


def test_check_accessible_guards_a_method(runtime_options):
    class Reader:
        def __init__(self):
            self.path = RuntimeValueProvider("path", str, "p")

        @check_accessible(["path"])
        def read(self, suffix):
            return self.path.get() + suffix

    with pytest.raises(RuntimeValueProviderError, match="is not accessible"):
        Reader().read("!")
    runtime_options({})
    assert Reader().read("!") == "p!"
    with pytest.raises(TypeError, match="takes a list"):
        check_accessible("path")


def test_a_value_provider_has_its_value_while_a_pipeline_runs_and_takes_it_to_the_workers() -> None:
    class Keeping:
        def run_pipeline(self, pipeline: object, options: object) -> bytes:
            self.sent = pickle.dumps(
                [RuntimeValueProvider("runner", str, "x"), RuntimeValueProvider("none", int, 3)]
            )
            return self.sent

    keeping = Keeping()
    Pipeline(keeping, PipelineOptions(["--runner=Spark"])).run()
    assert not RuntimeValueProvider("runner", str, "x").is_accessible()
    named, unset = pickle.loads(keeping.sent)
    assert (named.is_accessible(), named.get(), unset.get()) == (True, "Spark", 3)
    assert pickle.loads(pickle.dumps(named)).get() == "Spark"
