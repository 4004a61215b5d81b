"""Beam's modules and names that are left out, with what to do instead; loaded when a program first asks for one."""

from __future__ import annotations

_MODULES: tuple[tuple[str, str], ...] = (
    ("dataframe", "not our business: hand a Spark DataFrame in, or use Spark's own pandas interface"),
    (
        "ml.anomaly ml.gcp ml.rag ml.transforms ml.ts",
        "not yet: `penstock.ml.inference.base` has `RunInference`; load anything else in `DoFn.setup`",
    ),
    (
        "ml.inference.agent_development_kit ml.inference.anthropic_inference ml.inference.gemini_inference "
        "ml.inference.huggingface_inference ml.inference.model_manager ml.inference.onnx_inference "
        "ml.inference.pytorch_inference ml.inference.sklearn_inference ml.inference.tensorflow_inference "
        "ml.inference.tensorrt_inference ml.inference.utils ml.inference.vertex_ai_inference "
        "ml.inference.vertex_ai_model_monitoring_v2 ml.inference.vllm_inference ml.inference.xgboost_inference",
        "not yet: subclass `penstock.ml.inference.base.ModelHandler`, and load the model with its own library",
    ),
    ("yaml", "not our business: it describes pipelines for services; write the pipeline in Python"),
    ("portability internal tools", "not our business: protocol messages and Beam's own workshop"),
    ("examples", "not our business: copy what you use of Beam's examples, and change its imports"),
    (
        "transforms.external transforms.external_java transforms.external_transform_provider transforms.managed "
        "transforms.fully_qualified_named_transform transforms.xlang",
        "not our business: cross-language transforms need an expansion service; use Spark's connectors through "
        "`penstock.io`",
    ),
    (
        "transforms.enrichment transforms.enrichment_handlers",
        "not yet: call the service from an asynchronous DoFn; see `docs/connectors.md`",
    ),
    (
        "transforms.async_dofn",
        "define `process` with `async def`; `ParDo.with_concurrency` says how its calls are made",
    ),
    ("transforms.environments", "not our business: Spark defines the workers; see `docs/running.md`"),
    (
        "io.gcp io.aws io.azure io.snowflake io.kinesis io.debezium io.jdbc io.mongodbio io.hadoopfilesystem "
        "io.external.gcp io.external.snowflake",
        "not our business: Spark reads and writes these by format name or path: `penstock.io.sparkio`",
    ),
    (
        "io.external.kafka",
        "`penstock.io.kafka`, which needs no expansion service",
    ),
    (
        "io.filebasedsource io.filebasedsink io.concat_source",
        "not yet: `fileio.ReadMatches` and `fileio.WriteToFiles` with a `FileSink` of your own, or "
        "`iobase.BoundedSource` and `iobase.Sink`",
    ),
    ("io.localfilesystem io.filesystemio", "not our business: `FileSystems` opens local files"),
    (
        "io.unbounded_source",
        "not yet: write a `RangeSource`, or a splittable DoFn that never ends; see `docs/connectors.md`",
    ),
    (
        "io.flink",
        "not our business: `PeriodicImpulse` and `GenerateSequence` are streams that make their elements",
    ),
    (
        "io.requestresponse io.components",
        "not yet: call the service from an asynchronous DoFn; see `docs/connectors.md`",
    ),
    (
        "runners.dataflow runners.direct runners.portability runners.dask runners.job runners.worker",
        "not our business: the one engine is Spark; `penstock.runners` has `SparkRunner`, and `DirectRunner` for Spark "
        "on this machine",
    ),
    (
        "runners.interactive",
        "not our business: `head()` and `collect()` of a PCollection show its elements in a notebook",
    ),
    ("runners.render", "not our business: `Pipeline.explain` shows the graph and the plan"),
    ("utils.multi_process_shared", "not yet: `penstock.utils.shared` has one object for each worker process"),
    (
        "utils.secret utils.profiler utils.plugin utils.annotations utils.logger utils.processes",
        "not our business: any library does it",
    ),
    ("utils.python_callable", "not our business: agreements with other languages; import the function"),
    (
        "typehints.arrow_type_compatibility typehints.pandas_type_compatibility",
        "not our business: internal to Beam; batches of Arrow and pandas need no import",
    ),
    (
        "typehints.pytorch_type_compatibility",
        "not yet: `NumpyArray` and `torch.from_numpy`, or a `BatchConverter` of your own",
    ),
    (
        "testing.synthetic_pipeline testing.pipeline_verifiers testing.metric_result_matchers testing.load_tests "
        "testing.benchmarks testing.analyzers testing.datatype_inference testing.extra_assertions "
        "testing.pubsub_test_context testing.test_stream_service",
        "not our business: tests of Beam's services",
    ),
    (
        "coders.observable coders.slow_stream io.utils metrics.monitoring_infos "
        "options.pipeline_options_context runners.common runners.pipeline_context runners.pipeline_utils "
        "runners.sdf_utils runners.trivial_runner transforms.combinefn_lifecycle_pipeline transforms.create_source "
        "transforms.cy_combiners transforms.py_dataflow_distribution_counter typehints.intrinsic_one_ops "
        "typehints.opcodes typehints.testing typehints.typecheck utils.byte_limited_queue utils.counters "
        "utils.interactive_utils utils.proto_utils utils.sentinel utils.subprocess_server utils.thread_pool_executor "
        "utils.transform_service_launcher utils.urns",
        "not our business: internal to Beam",
    ),
    ("coders.coder_impl", "subclass `Coder`, and define `encode` and `decode`"),
    ("coders.avro_record", "not yet: subclass `Coder` around an Avro library"),
    ("version", "`penstock.__version__`"),
)

_NAMES: tuple[tuple[str, str, str], ...] = (
    (
        "",
        "AnnotationBasedPayloadBuilder BeamJarExpansionService DEFAULT_EXPANSION_SERVICE DataclassBasedPayloadBuilder "
        "ExpansionAndArtifactRetrievalStub ExplicitSchemaTransformPayloadBuilder ExternalTransform "
        "ImplicitSchemaPayloadBuilder JavaClassLookupPayloadBuilder JavaExternalTransform JavaJarExpansionService "
        "NamedTupleBasedPayloadBuilder PayloadBuilder SchemaAwareExternalTransform SchemaBasedPayloadBuilder "
        "SchemaTransformPayloadBuilder SchemaTransformsConfig",
        "not our business: cross-language transforms",
    ),
    (
        "",
        "BIGQUERY DELTA DELTA_CDC ICEBERG KAFKA MANAGED_SCHEMA_TRANSFORM_IDENTIFIER "
        "MANAGED_TRANSFORM_URN_TO_JAR_TARGET_MAPPING ManagedReplacement ManagedTransforms",
        "not our business: managed transforms; name Spark's format with `penstock.io.sparkio`",
    ),
    (
        "",
        "GroupByEncryptedKey Secret GcpSecret GcpHsmGeneratedSecret",
        "not our business: for services that store what is shuffled; switch on Spark's own encryption, "
        "`spark.io.encryption.enabled`",
    ),
    ("", "DataflowDistributionCounter", "not our business: `Metrics.distribution`"),
    (
        "",
        "OrderedDict Union namedtuple UnionConstraint convert_to_typing_type instance_to_type iter_urns memoize "
        "named_fields_to_schema named_tuple_from_schema named_tuple_to_schema typing_from_runner_api",
        "imports that Beam's modules show by accident; import them from where they are at home, such as `typing` or "
        "`penstock.typehints.schemas`",
    ),
    (
        "pvalue",
        "SideInputData",
        "not our business: a message to Beam's workers; `AsList` and the rest are there",
    ),
    ("pipeline", "ComponentIdMap ExternalTransformFinder", "not our business: protocol messages"),
    (
        "pipeline",
        "PTransformOverride",
        "not our business: for runners that replace transforms; apply the transform that you mean",
    ),
    (
        "coders.coders",
        "AVRO_GENERIC_CODER_URN AvroGenericCoder",
        "not yet: subclass `Coder` around an Avro library",
    ),
    (
        "coders.coders",
        "ProtoCoder ProtoPlusCoder DeterministicProtoCoder",
        "not yet: messages are pickled unchanged; for keys, use their serialized bytes",
    ),
    (
        "coders.coders",
        "DillCoder maybe_dill_dumps maybe_dill_loads",
        "not our business: cloudpickle pickles; `CloudpickleCoder`",
    ),
    (
        "coders.coders",
        "StateBackedIterableCoder TimestampPrefixingOpaqueWindowCoder TimestampPrefixingWindowCoder "
        "PaneInfoCoder WindowedValueCoder ParamWindowedValueCoder",
        "not our business: formats between Beam's workers and their runner",
    ),
    ("coders.coders", "serialize_coder deserialize_coder", "not our business: pickle the coder"),
    ("coders.coders", "T", "Python's own: `typing.TypeVar`"),
    ("io", "SCHEMA_AUTODETECT", "not our business: of BigQuery"),
    (
        "io.avroio",
        "avro_dict_to_beam_row avro_schema_to_beam_schema avro_type_to_beam_type avro_union_type_to_beam_type "
        "avro_value_to_beam_value beam_row_to_avro_dict beam_schema_to_avro_schema beam_type_to_avro_type "
        "beam_value_to_avro_value unnest_primitive_type",
        "not our business: a schema here is a row type; give `WriteToAvro` an Avro schema",
    ),
    (
        "io.filesystem",
        "CompressedFile",
        "give `FileSystems.open` and `FileSystems.create` a `compression_type`, or wrap a file with Python's `gzip`",
    ),
    ("io.filesystem", "DEFAULT_READ_BUFFER_SIZE", "not our business: internal to Beam"),
    ("io.textio", "append_pandas_args", "not our business: it writes Beam's own docstrings"),
    ("io.parquetio", "ARROW_MAJOR_VERSION", "not our business: `pyarrow.__version__`"),
    (
        "ml.inference.base",
        "RemoteModelHandler RateLimitExceeded",
        "not yet: make the client in `load_model`, and call it in `run_inference`",
    ),
    (
        "ml.inference.base",
        "KeyModelPathMapping ModelMetadata OOMProtectedFn load_model_status",
        "not yet: a worker loads a model once, and keeps it",
    ),
    (
        "options.pipeline_options",
        "additional_option_ptransform_fn enable_all_additional_type_checks",
        "not our business: switches of tests of Beam",
    ),
    (
        "testing.test_stream",
        "ReverseTestStream PairWithTiming OutputFormat WindowedValueHolder WindowedValueHolderMeta",
        "not our business: for Beam's recorder of interactive sources",
    ),
    (
        "testing.test_utils",
        "cleanup_subscriptions cleanup_topics PullResponseMessage create_pull_response",
        "not our business: for tests with Pub/Sub",
    ),
    (
        "transforms.combiners",
        "PhasedCombineFnExecutor",
        "not our business: for Beam's workers; call the methods of the CombineFn",
    ),
    (
        "transforms.combiners",
        "LiftedCombinePerKey",
        "not our business: `CombinePerKey`; the runner combines before the shuffle where that is legal",
    ),
    (
        "transforms.core",
        "DoFnInfo PickledDoFnInfo StatelessDoFnInfo SIDE_INPUT_PREFIX",
        "not our business: how Beam sends a DoFn to its workers",
    ),
    (
        "transforms.trigger",
        "TriggerDriver BatchGlobalTriggerDriver CombiningTriggerDriver GeneralTriggerDriver create_trigger_driver "
        "TriggerContext NestedContext",
        "not our business: the state machines here are those of `penstock.machines`; what a trigger of your own sees "
        "is `penstock.windows.custom_trigger.TriggerContext`",
    ),
    (
        "transforms.trigger",
        "UnmergedState InMemoryUnmergedState MergeableStateAdapter SimpleState",
        "not our business: the state in Beam's state machines",
    ),
    ("transforms.util", "GroupByEncryptedKey", "not our business: `spark.io.encryption.enabled`"),
    (
        "transforms.util",
        "SharedKey WithSharedKey load_shared_key",
        "not our business: keys from a secret store",
    ),
    (
        "transforms.util",
        "WithLengthBucketKey",
        "not our business: inside of `BatchElements`, which has its arguments",
    ),
    (
        "transforms.util",
        "reify_metadata_default_window reify_metadata_custom_window restore_metadata_default_window "
        "restore_metadata_custom_window RESHUFFLE_TYPEHINT_BREAKING_CHANGE_VERSION",
        "not our business: internal to Beam's Reshuffle, which here is a primitive",
    ),
    ("transforms.util", "U", "Python's own: `typing.TypeVar`"),
    ("transforms.sideinputs", "SideInputMap", "not our business: in Beam's workers"),
    ("transforms.sql", "SqlTransformSchema", "not our business: a message to Beam's expansion service"),
    (
        "utils.windowed_value",
        "WindowedBatch",
        "not our business: for Beam's workers; a DoFn may yield a `HomogeneousWindowedBatch`",
    ),
    (
        "utils.histogram",
        "Histogram",
        "not our business: for Beam's own metrics; `Metrics.histogram`",
    ),
    (
        "utils.retry",
        "retry_on_server_errors_filter retry_on_server_errors_and_timeout_filter "
        "retry_if_valid_input_but_server_error_and_timeout_filter",
        "not our business: for Google's services; pass a function of your own as `retry_filter`",
    ),
    ("typehints.decorators", "GeneratorWrapper", "not our business: internal to Beam"),
    (
        "typehints.schemas",
        "SchemaTranslation schema_field typing_to_runner_api typing_from_runner_api value_to_runner_api "
        "value_from_runner_api option_to_runner_api option_from_runner_api ATOMIC_TYPE_TO_PRIMITIVE "
        "PRIMITIVE_TO_ATOMIC_TYPE PYTHON_ANY_URN",
        "not our business: protocol messages",
    ),
    (
        "typehints.schemas",
        "LogicalType LogicalTypeRegistry NoArgumentLogicalType PassThroughLogicalType DecimalLogicalType "
        "FixedPrecisionDecimalLogicalType FixedPrecisionDecimalArgumentRepresentation MicrosInstant "
        "MicrosInstantRepresentation MillisInstant ParameterizedTimestamp ParameterizedTimestampRepresentation "
        "ParameterizedTimestampShortRepresentation JdbcDateType JdbcTimeType Date FixedBytes VariableBytes FixedString "
        "VariableString PythonCallable",
        "not our business: agreements with other languages; fields may have any Python type",
    ),
)

_NAMES_IN_RUNNERS = {
    "runners.dataflow": "DataflowRunner TestDataflowRunner",
    "runners.direct": "TestDirectRunner",
}
"""The names in Beam's ``runners`` from such modules."""

_NAMES_IN_IO = {
    "io.filebasedsink": "FileBasedSink",
    "io.mongodbio": "ReadFromMongoDB WriteToMongoDB",
    "io.gcp": "BigQueryDisposition BigQueryQueryPriority BigQuerySchemaUpdateOption BigQuerySink BigQuerySource "
    "MultipleReadFromPubSub PubSubSourceDescriptor PubsubMessage ReadAllFromBigQuery ReadFromBigQuery "
    "ReadFromBigQueryRequest ReadFromPubSub ReadStringsFromPubSub TableRowJsonCoder WriteResult "
    "WriteStringsToPubSub WriteToBigQuery WriteToPubSub gcsio",
}
"""The names in Beam's ``io`` from such modules."""

INSTEAD = {f"penstock.{name}": text for names, text in _MODULES for name in names.split()}
"""Replacements of modules, by the names that the modules would have in penstock."""

INSTEAD_OF_NAMES = {
    f"penstock.{package}.{name}": INSTEAD[f"penstock.{module}"]
    for package, modules in (("io", _NAMES_IN_IO), ("runners", _NAMES_IN_RUNNERS))
    for module, names in modules.items()
    for name in names.split()
} | {
    ".".join(filter(None, ["penstock", module, name])): text
    for module, names, text in _NAMES
    for name in names.split()
}
"""Likewise, for names: those in Beam's ``io`` and ``runners`` from such modules, and those of modules that are here."""


def instead_of(name: str) -> str | None:
    """Returns what to use instead of a module or a name that is left out; None for others."""
    return INSTEAD.get(name) or INSTEAD_OF_NAMES.get(name) or INSTEAD_OF_NAMES.get(_home(name))


def _home(name: str) -> str:
    """The name in the module that its package shows as its own."""
    return name.replace("penstock.coders.", "penstock.coders.coders.", 1)
