"""The table of options: one record for each option of penstock, and for each Beam option with a meaning on Spark.

A new option is a new record here. The flag, the checks, ``--help``, the documentation and the views come from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from penstock.checks.similar_names import hint_at_name
from penstock.error import three_parts
from penstock.options.optimisations import OPTIMISATIONS
from penstock.options.option import CommaSeparatedList, Ignored, Option, Refused, Requirement
from penstock.options.spark_properties import SparkProperties, parse_spark_properties, read_properties

TOKEN_MIN = 16
"""The minimum number of characters of a token of the live page, so that it cannot be guessed."""

_PORT_MAX = 65_535
_SECONDS_OF_A_DAY = 86_400


def make_ignored_options(instead: str, options: Mapping[str, Any]) -> tuple[Option, ...]:
    """Makes options that have no effect.

    Args:
        instead: What to use instead, or why the option has no effect.
        options: Types, or defaults, by the spellings of the flag; the last spelling is the option's name.

    >>> made = make_ignored_options("", {"label labels": list, "port": 0})
    >>> [(option.name, option.type, option.default) for option in made]
    [('labels', <class 'list'>, None), ('port', <class 'int'>, 0)]
    """
    return tuple(
        Option(
            flags.split()[-1].replace("-", "_"),
            default if isinstance(default, type) else type(default),
            None if isinstance(default, type) else default,
            flags=flags,
            effect=Ignored(instead),
        )
        for flags, default in options.items()
    )


def _refused(instead: str, options: Mapping[str, Any]) -> tuple[Option, ...]:
    """Options that no run follows; the arguments are those of `make_ignored_options`."""
    return tuple(
        Option(option.name, option.type, option.default, flags=option.flags, effect=Refused(instead))
        for option in make_ignored_options("", options)
    )


def _raised_by(read: Callable[[Any], Any]) -> Callable[[Any], Iterator[str]]:
    """A check by a function that raises a ValueError."""

    def check(value: object) -> Iterator[str]:
        try:
            read(value)
        except ValueError as error:
            yield str(error)

    return check


def _wrong_optimisations(names: list[Any]) -> Iterator[str]:
    known = f"use a list of: all, {', '.join(OPTIMISATIONS)}"
    for name in names:
        if name != "all" and name not in OPTIMISATIONS:
            hint = hint_at_name(str(name), OPTIMISATIONS, known)
            yield three_parts(f"without names {name!r}, which is not an optimisation", hint=hint)


def _wrong_interval(seconds: float) -> Iterator[str]:
    if not 0 < seconds < _SECONDS_OF_A_DAY:
        what = f"trigger_interval is {seconds!r}"
        yield three_parts(what, hint="use seconds: more than 0, less than a day")


def _short_token(token: str) -> Iterator[str]:
    if len(token) < TOKEN_MIN:
        # The token itself stays out of the message.
        what = f"live_token has {len(token)} characters, and needs at least {TOKEN_MIN}"
        yield three_parts(
            what, hint='use the output of: python -c "import secrets; print(secrets.token_urlsafe())"'
        )


def _wrong_checks(names: str) -> Iterator[str]:
    for name in names.split(","):
        if name not in ("", "all", "ptransform_fn"):
            what = f"--type_check_additional has no feature {name!r}"
            yield three_parts(what, hint="use all or ptransform_fn")


def _unavailable_pickler(name: str) -> Iterator[str]:
    if name.startswith("dill"):
        what = f"--pickle_library={name} is not available"
        yield three_parts(what, hint="leave the option out: functions are sent with cloudpickle")


def _text_of_experiments(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield three_parts("experiments is a string, not a list", hint=f"write experiments=[{value!r}]")


STANDARD = (
    Option(
        "runner",
        help="SparkRunner, the default, or the name of a local runner in Beam, such as DirectRunner.",
    ),
    Option(
        "streaming",
        bool,
        False,
        "Marks the pipeline as one that runs forever.",
        effect=Ignored(
            "a pipeline with unbounded input is a stream, and --mode sets how it runs", is_in_batch_only=True
        ),
    ),
    Option(
        "resource_hints",
        list,
        [],
        "A resource hint, as name=value; repeatable.",
        flags="resource_hint resource_hints",
    ),
    Option(
        "auto_unique_labels",
        bool,
        False,
        "Appends a number to a label that is used twice, instead of refusing it.",
    ),
    Option(
        "no_wait_until_finish", bool, False, "Does not wait for the pipeline at the end of the with block."
    ),
)

STREAMING = (
    Option(
        "update_compatibility_version",
        help="A version of Beam whose older behaviour the pipeline needs, such as 2.60.0.",
    ),
)

TYPES = (
    Option(
        "type_check_strictness",
        default="DEFAULT_TO_ANY",
        choices=("ALL_REQUIRED", "DEFAULT_TO_ANY"),
        help="ALL_REQUIRED refuses steps without type hints; DEFAULT_TO_ANY takes them as Any.",
    ),
    Option(
        "type_check_additional",
        default="",
        help="all or ptransform_fn, separated by commas.",
        check=_wrong_checks,
    ),
    Option(
        "pipeline_type_check",
        bool,
        True,
        "Does not check type hints while the pipeline is built.",
        flags="no_pipeline_type_check",
        sets=False,
    ),
    Option(
        "runtime_type_check",
        bool,
        False,
        "Checks the inputs and outputs of DoFns and CombineFns against their type hints while the pipeline runs.",
    ),
    Option(
        "performance_runtime_type_check",
        bool,
        False,
        "Like runtime_type_check, but only for the first of every hundred elements in each task.",
    ),
    Option(
        "allow_non_deterministic_key_coders",
        bool,
        False,
        "Pickles keys of classes without a deterministic encoding, which are otherwise refused. Equal keys whose "
        "pickled bytes differ are then different keys, and the workers log a warning.",
    ),
    Option("allow_unsafe_triggers", bool, False, "Accepts triggers that may lose data."),
    *make_ignored_options("types are checked without beartype", {"disable_beartype": False}),
    *make_ignored_options(
        "declare the type with with_output_types", {"exclude_infer_dataclass_field_type": False}
    ),
    *make_ignored_options(
        "keys are never encoded with dill", {"force_cloudpickle_deterministic_coders": False}
    ),
)

_CORES = "--master='local[4]' runs on four cores"
_BEAMS_RUNNER = "it belongs to Beam's in-process runner"
DIRECT = (
    *make_ignored_options(_CORES, {"direct_num_workers": 1, "direct_running_mode": "in_memory"}),
    Option(
        "direct_runner_use_stacked_bundle",
        bool,
        True,
        flags="no_direct_runner_use_stacked_bundle",
        sets=False,
        effect=Ignored(_BEAMS_RUNNER),
    ),
    *make_ignored_options(
        _BEAMS_RUNNER,
        {"direct_runner_bundle_repeat": 0, "direct_embed_docker_python": False, "direct_test_splits": {}},
    ),
)

DEBUG = (
    Option(
        "experiments",
        CommaSeparatedList,
        flags="experiment experiments",
        check=_text_of_experiments,
        effect=Ignored("only your own program reads them, with lookup_experiment"),
    ),
    *make_ignored_options("Pipeline.explain() shows the plan", {"dataflow_job_file": str}),
    *make_ignored_options(
        "--spark_conf=spark.executor.cores=4 sets how many tasks an executor runs",
        {"number_of_worker_harness_threads": int},
    ),
)

_SPARK_SENDS = (
    "send files with spark-submit --py-files, or install them where the workers are; see docs/running.md"
)
SETUP = (
    *_refused(
        _SPARK_SENDS,
        {
            "requirements_file": str,
            "requirements_cache": str,
            "setup_file": str,
            "extra_package extra_packages": list,
            "file_to_stage files_to_stage": list,
        },
    ),
    *_refused(
        "import the module where a DoFn is set up",
        {"beam_plugin beam_plugins": list},
    ),
    *_refused(
        "switch Spark's own encryption on, --spark_conf=spark.io.encryption.enabled=true", {"gbek": str}
    ),
    Option(
        "pickle_library",
        default="default",
        choices=("cloudpickle", "default", "dill", "dill_unsafe"),
        help="default or cloudpickle, which are the same here.",
        check=_unavailable_pickler,
    ),
    Option("save_main_session", bool, help="Always done: functions of the main program are sent by value."),
    Option(
        "save_main_session",
        bool,
        flags="no_save_main_session",
        sets=False,
        effect=Ignored("functions of the main program are always sent by value"),
    ),
    *make_ignored_options(
        "install packages on the workers, or send an environment with Spark's --archives",
        {"requirements_cache_only_sources": False},
    ),
    *make_ignored_options("penstock sends itself", {"sdk_location": "default"}),
    *make_ignored_options("no service uses it", {"user_agent": str}),
    *make_ignored_options(
        "Spark defines the workers",
        {
            "prebuild_sdk_container_engine": str,
            "prebuild_sdk_container_base_image": str,
            "cloud_build_machine_type": str,
            "docker_registry_push_url": str,
        },
    ),
    *make_ignored_options(
        "--spark_conf=spark.jars.repositories=... says where Spark finds Java packages",
        {"maven_repository_url": str},
    ),
)

TEST = (
    *_refused("check the result with assert_that", {"on_success_matcher": str}),
    *_refused("call explain(), which shows what a run would do", {"dry_run": False}),
    Option(
        "wait_until_finish_duration",
        int,
        help="How long a test waits for its pipeline, in milliseconds; by default, until it ends.",
    ),
)

_JOB_SERVER = "no job server runs here: --master"
SPARK = (
    Option(
        "mode",
        choices=("batch", "micro_batch", "streaming"),
        help="How the pipeline runs. By default it is a batch if every input is bounded.",
    ),
    Option(
        "master", help="Spark's master URL, such as local[4]; by default the URL in Spark's configuration."
    ),
    Option("spark_master_url", help="Beam's name for master; if both are set, master takes precedence."),
    Option("app_name", help="The application's name in Spark's UI; by default the runner chooses one."),
    Option(
        "spark_conf",
        SparkProperties,
        help="A Spark property, key=value; repeatable. Every user of the machine can read a command line: put "
        "secrets into spark_conf_file.",
        check=_raised_by(parse_spark_properties),
    ),
    Option(
        "spark_conf_file",
        help="A file of Spark properties, like spark-defaults.conf; spark_conf takes precedence.",
        check=_raised_by(read_properties),
    ),
    Option(
        "shuffle_partitions",
        int,
        at_least=1,
        help="The number of partitions of a shuffle. By default, the number in an existing checkpoint, "
        "or Spark's default.",
    ),
    Option(
        "checkpoint_location",
        help="The folder in which a streaming pipeline keeps its progress and state.",
    ),
    Option(
        "events_per_batch",
        int,
        at_least=1,
        help="The number of events of a TestStream in a micro-batch; by default all.",
    ),
    Option(
        "trigger_interval",
        float,
        help="The seconds between the beginnings of two micro-batches. By default, one begins when data arrives, "
        "and once a second while timers wait for the clock.",
        check=_wrong_interval,
    ),
    Option(
        "without",
        list,
        help=f"An optimisation to switch off, repeatable: all, {', '.join(OPTIMISATIONS)}.",
        check=_wrong_optimisations,
    ),
    Option(
        "record_events",
        int,
        at_least=1,
        help="The number of elements and panes of each grouping to record, for result.figure.",
    ),
    Option(
        "drop_state",
        list,
        help="The label of a grouping or a source that the pipeline no longer has; repeatable. Its state or its "
        "position in the checkpoint is discarded.",
    ),
    Option(
        "progress",
        default="auto",
        choices=("auto", "always", "off"),
        help="auto shows the progress of a batch that takes a while, a bar on a terminal and lines elsewhere, and a "
        "line at the good end of a stream; always also says how a quick batch has ended; off shows nothing.",
    ),
    Option(
        "live_port",
        int,
        at_least=0,
        at_most=_PORT_MAX,
        hint=f"use a port from 1 to {_PORT_MAX}, or 0 for any that is free",
        help="The port of a page that shows the run while it lasts; 0 chooses a free one.",
    ),
    Option(
        "live_host",
        help="The address at which the page of live_port listens; by default, only this machine can open it.",
        needs=Requirement("live_port", "add --live_port=0", ", and so there is no page"),
    ),
    Option(
        "live_token",
        check=_short_token,
        needs=Requirement("live_port", "add --live_port=0", ", and so there is no page"),
        help="The token with which a request drains or cancels a stream on the page of live_port, 16 characters or "
        "more; without it, the page only shows the run. The environment variable PENSTOCK_LIVE_TOKEN has the same "
        "effect, and is not in the list of processes.",
    ),
    Option(
        "fast_start",
        bool,
        False,
        "Starts a local Spark in half the time, but makes long jobs slower; for tests.",
    ),
    Option(
        "show_elements_in_errors",
        bool,
        False,
        "Shows the failing element in the error; off by default, because elements may be private.",
    ),
    Option(
        "full_trace",
        bool,
        False,
        "Shows all lines of a traceback, also those of penstock and Spark; without it, only the program's lines. "
        "The environment variable PENSTOCK_FULL_TRACE=1 does the same.",
    ),
    Option(
        "drain_on_signal", bool, False, "Makes Ctrl-C and SIGTERM drain a stream instead of cancelling it."
    ),
    Option(
        "available_now",
        bool,
        False,
        "Ends a stream when it has read the data that was available at its start; its next run continues from the "
        "checkpoint. With --mode=batch, unbounded sources are read in this way.",
    ),
    Option(
        "take_over",
        bool,
        False,
        "Stops another run that holds the checkpoint, and continues where it stopped.",
        needs=Requirement("checkpoint_location", "name the folder of the checkpoint to take over"),
    ),
    Option(
        "live",
        bool,
        False,
        "Shows a run in the terminal while it lasts: watermarks, lags, panes (needs penstock[live]). Elsewhere it "
        "prints a line every ten seconds.",
    ),
    *make_ignored_options(
        _JOB_SERVER, {"spark_job_server_jar": str, "spark_submit_uber_jar": False, "spark_rest_url": str}
    ),
    *make_ignored_options("the installed pyspark determines the version", {"spark_version": "3"}),
)
