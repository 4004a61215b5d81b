"""The modules of Beam that are left out, with what to do instead; loaded when a program first asks for one."""

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
    (
        "transforms.external transforms.external_java transforms.external_transform_provider transforms.managed "
        "transforms.fully_qualified_named_transform transforms.xlang",
        "not our business: cross-language transforms need an expansion service; use Spark's connectors through "
        "`penstock.io`",
    ),
    (
        "transforms.enrichment transforms.enrichment_handlers",
        "not yet: call the service from an asynchronous DoFn; see `docs/ends.md`",
    ),
    (
        "transforms.async_dofn",
        "define `process` with `async def`; `ParDo.with_concurrency` says how its calls are made",
    ),
    ("transforms.environments", "not our business: Spark says what workers are; see `docs/running.md`"),
    (
        "transforms.create_source transforms.py_dataflow_distribution_counter transforms.cy_combiners",
        "not our business: inner parts of Beam's",
    ),
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
        "io.flink",
        "not our business: `PeriodicImpulse` and `GenerateSequence` are streams that make their elements",
    ),
    (
        "io.requestresponse io.components",
        "not yet: call the service from an asynchronous DoFn; see `docs/ends.md`",
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
    ("utils.secret utils.profiler utils.plugin utils.annotations", "not our business: any library does it"),
    (
        "typehints.arrow_type_compatibility typehints.pandas_type_compatibility",
        "not our business: inner parts of Beam's; batches of Arrow and pandas need no import",
    ),
    (
        "typehints.pytorch_type_compatibility",
        "not yet: `NumpyArray` and `torch.from_numpy`, or a `BatchConverter` of your own",
    ),
    (
        "testing.synthetic_pipeline testing.pipeline_verifiers testing.metric_result_matchers testing.load_tests "
        "testing.benchmarks",
        "not our business: tests of Beam's own services",
    ),
    ("coders.avro_record", "not yet: subclass `Coder` around an Avro library"),
    ("version", "`penstock.__version__`"),
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
"""What to use instead of each module, by the name that it would have in penstock."""

INSTEAD_OF_NAMES = {
    f"penstock.{package}.{name}": INSTEAD[f"penstock.{module}"]
    for package, modules in (("io", _NAMES_IN_IO), ("runners", _NAMES_IN_RUNNERS))
    for module, names in modules.items()
    for name in names.split()
}
"""Likewise, for the names in Beam's ``io`` and ``runners`` from such modules."""


def instead_of(name: str) -> str | None:
    """What to use instead of a module, or a name in Beam's ``io`` or ``runners``, that is left out; None for others."""
    return INSTEAD.get(name) or INSTEAD_OF_NAMES.get(name)
