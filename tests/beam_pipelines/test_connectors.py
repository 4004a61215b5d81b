"""What comes along with Beam, for real: files on S3, models, data frames, calls of services, MongoDB."""

from __future__ import annotations

import http.server
import pickle
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("apache_beam")
import apache_beam as beam
import pandas as pd
from apache_beam.dataframe.convert import to_dataframe, to_pcollection
from apache_beam.io import fileio
from apache_beam.io.filesystems import FileSystems
from apache_beam.ml.inference.base import RunInference
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils import retry

from penstock_spark.beam import BeamRunner
from tests.beam_pipelines.mongo_server import mongo_server
from tests.connectors.s3_server import s3_server

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


def on_spark(*flags: str) -> Any:
    return beam.Pipeline(runner=BeamRunner(shuffle_partitions=2), options=PipelineOptions([*flags]))


# Files on S3.


@pytest.fixture(scope="module")
def s3_flags() -> Iterator[list[str]]:
    """How a program names a store and the keys to it."""
    pytest.importorskip("boto3", reason="needs the package boto3")
    with s3_server() as address:
        keys = ["--s3_access_key_id=somebody", "--s3_secret_access_key=hush", "--s3_region_name=us-east-1"]
        yield [f"--s3_endpoint_url={address}", *keys]


def content_of(path: str) -> str:
    """What a function of the user's reads by Beam's file systems, in a worker."""
    with FileSystems.open(path) as file:
        return str(file.read().decode())


def test_files_on_s3_are_written_and_read_with_the_options_of_the_pipeline(s3_flags: list[str]) -> None:
    numbers = [str(number) for number in range(40)]
    with on_spark(*s3_flags) as p:
        lines = p | beam.Create(numbers)
        _ = lines | beam.io.WriteToText("s3://lake/text/part", num_shards=2)
        naming = fileio.destination_prefix_naming()
        _ = lines | fileio.WriteToFiles(
            "s3://lake/files", destination=lambda line: f"{len(line)}", file_naming=naming
        )
    with on_spark(*s3_flags) as p:
        matched = p | fileio.MatchFiles("s3://lake/files/*-of-*")
        texts = matched | fileio.ReadMatches() | beam.Map(lambda file: file.read_utf8())
        paths = matched | beam.Map(lambda match: match.path) | beam.Reshuffle()
        found = {
            "text": p | beam.io.ReadFromText("s3://lake/text/part-*-of-00002"),
            "matches": texts | "Lines" >> beam.FlatMap(str.splitlines),
            "opened": paths | beam.Map(content_of) | "Split" >> beam.FlatMap(str.splitlines),
        }
        for name, values in found.items():
            assert_that(values, equal_to(numbers), label=name)


def test_a_bucket_that_is_missing_is_named(s3_flags: list[str]) -> None:
    with pytest.raises(OSError, match="s3://nowhere/in"):
        _ = on_spark(*s3_flags) | beam.io.ReadFromText("s3://nowhere/in*")
    p = on_spark(*s3_flags)
    _ = p | beam.Create(["a"]) | beam.io.WriteToText("s3://nowhere/out")
    with pytest.raises(Exception, match=r"(?s)specified bucket does not exist.*at step 'WriteToText"):
        p.run()


# Models.


class Line:
    """Predicts with a model that scikit-learn has fitted: y = 2x + 1."""

    def __init__(self, folder: Path) -> None:
        linear_model = pytest.importorskip("sklearn.linear_model", reason="needs the package scikit-learn")
        from apache_beam.ml.inference.sklearn_inference import SklearnModelHandlerNumpy

        model = linear_model.LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
        (folder / "line.pickle").write_bytes(pickle.dumps(model))
        self.handler = SklearnModelHandlerNumpy(str(folder / "line.pickle"), max_batch_size=1)


def rounded(prediction: Any) -> tuple[float, float]:
    return float(prediction.example[0]), round(float(prediction.inference), 6)


def test_a_model_of_scikit_learn_predicts_and_what_it_refuses_is_not_lost(tmp_path: Path) -> None:
    import numpy as np

    handler = Line(tmp_path).handler
    given = [np.array([float(number)]) for number in range(5)]
    with on_spark() as p:
        predictions = p | beam.Create(given) | RunInference(handler) | beam.Map(rounded)
        assert_that(predictions, equal_to([(float(x), 2.0 * x + 1) for x in range(5)]), label="all")
        mixed = p | "Mixed" >> beam.Create([*given, np.array([float("nan")])])
        good, bad = mixed | "Careful" >> RunInference(handler).with_exception_handling()
        kept = good | "Kept" >> beam.Map(rounded)
        assert_that(kept, equal_to([(float(x), 2.0 * x + 1) for x in range(5)]), label="good")
        reasons = bad.failed_inferences | beam.Map(lambda failed: "NaN" in repr(failed))
        assert_that(reasons, equal_to([True]), label="bad")


def test_a_model_that_raises_fails_its_step_by_name(tmp_path: Path) -> None:
    import numpy as np

    p = on_spark()
    _ = p | beam.Create([np.array([float("nan")])]) | "Predict" >> RunInference(Line(tmp_path).handler)
    with pytest.raises(ValueError, match=r"(?s)Input X contains NaN.*while running 'Predict/"):
        p.run()


# Data frames.


def test_a_data_frame_of_beams_is_what_pandas_makes_of_it() -> None:
    rows = [beam.Row(team=f"team{number % 3}", points=number) for number in range(30)]
    with on_spark() as p:
        frame = to_dataframe(p | beam.Create(rows))
        sums = frame.groupby("team").sum()
        best = frame[frame.points >= 10].groupby("team").points.max()
        table = pd.DataFrame([row.as_dict() for row in rows])
        expected = table.groupby("team").points.sum().items()
        pairs = to_pcollection(sums, include_indexes=True) | beam.Map(tuple)
        assert_that(pairs, equal_to([(team, points) for team, points in expected]), label="sums")
        points = to_pcollection(best) | "Ints" >> beam.Map(int)
        assert_that(points, equal_to([27, 28, 29]), label="best")


def test_a_function_on_a_data_frame_that_raises_fails_its_step_by_name() -> None:
    p = on_spark()
    frame = to_dataframe(p | beam.Create([beam.Row(points=1), beam.Row(points=0)]))
    shares = frame.points.apply(lambda points: 1 // points)
    _ = to_pcollection(shares, label="Shares")
    with pytest.raises(ZeroDivisionError, match=r"(?s)while running 'Shares/.*hint:"):
        p.run()


# Calls of services.


class Doubles(http.server.BaseHTTPRequestHandler):
    """Doubles the number in a path, but is too busy for the first two calls with each; never answers for 13."""

    calls: dict[str, int] = {}

    def do_GET(self) -> None:
        self.calls[self.path] = self.calls.get(self.path, 0) + 1
        number = int(self.path[1:])
        self.send_response(503 if self.calls[self.path] <= 2 or number == 13 else 200)
        self.end_headers()
        self.wfile.write(str(2 * number).encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def doubling_service() -> Iterator[str]:
    Doubles.calls = {}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Doubles)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def asking(address: str) -> Any:
    """Calls of the service, up to four times each."""
    pytest.importorskip("google.api_core", reason="needs the package google-api-core")
    from apache_beam.io import requestresponse

    class Ask(requestresponse.Caller):  # type: ignore[misc]
        def __call__(self, request: int, *args: Any, **kwargs: Any) -> tuple[int, int]:
            try:
                with urllib.request.urlopen(f"{address}/{request}") as answer:
                    return request, int(answer.read())
            except urllib.error.HTTPError as error:
                raise requestresponse.UserCodeQuotaException(f"the service said {error.code}") from error

    class Soon(requestresponse.Repeater):  # type: ignore[misc]
        """Beam's own, but for its first wait, which is five seconds."""

        @retry.with_exponential_backoff(
            num_retries=3, initial_delay_secs=0.01, retry_filter=requestresponse.retry_on_exception
        )
        def repeat(self, *call: Any) -> Any:
            return requestresponse.NoOpsRepeater().repeat(*call)

    return requestresponse.RequestResponseIO(Ask(), repeater=Soon(), throttler=None)


def test_a_service_that_fails_twice_answers_the_third_call() -> None:
    with doubling_service() as address:
        with on_spark() as p:
            answers = p | beam.Create([1, 2, 3]) | asking(address)
            assert_that(answers, equal_to([(1, 2), (2, 4), (3, 6)]))
        assert Doubles.calls == {"/1": 3, "/2": 3, "/3": 3}


def test_a_service_that_never_answers_fails_its_step_with_its_words() -> None:
    with doubling_service() as address:
        p = on_spark()
        _ = p | beam.Create([13]) | "Ask" >> asking(address)
        with pytest.raises(Exception, match=r"(?s)the service said 503.*at step 'Ask/"):
            p.run()
        assert Doubles.calls["/13"] == 4


# MongoDB.


def test_documents_are_written_to_mongodb_and_read_in_pieces() -> None:
    pytest.importorskip("secantus", reason="needs the package SecantusDB")
    from apache_beam.io.mongodbio import ReadFromMongoDB, WriteToMongoDB

    with mongo_server() as address:
        documents = [{"_id": number, "team": number % 3, "pad": "x" * 50_000} for number in range(60)]
        with on_spark() as p:
            _ = p | beam.Create(documents) | WriteToMongoDB(address, "game", "scores")
        with on_spark() as p:
            read = p | ReadFromMongoDB(address, "game", "scores", {"team": 1}, ["team"], bucket_auto=True)
            assert_that(read, equal_to([{"_id": number, "team": 1} for number in range(1, 60, 3)]))
        p = on_spark()
        _ = p | "Missing" >> ReadFromMongoDB(address, "game", "nothing", bucket_auto=True)
        with pytest.raises(Exception, match=r"(?s)nothing.*while running 'Missing/"):
            p.run()
