"""Dagster assets: a batch as an asset that is made each day, and a check that a stream lives.

dagster dev -f deploy/dagster/penstock_assets.py
"""

import json
import subprocess
import sys

import dagster

DAYS = dagster.DailyPartitionsDefinition(start_date="2026-01-01")


@dagster.asset(partitions_def=DAYS)
def daily_scores(context: dagster.AssetExecutionContext) -> None:
    """The totals of a day, which a batch writes; a repeated run replaces its files."""
    day = context.partition_key
    program = ["/opt/programs/daily_scores.py", "--mode=batch"]
    places = [f"--input=/data/scores/{day}", f"--output=/data/totals/{day}"]
    subprocess.run([sys.executable, *program, *places], check=True)


@dagster.asset
def scores_stream() -> None:
    """The stream that another system runs."""


@dagster.asset_check(asset=scores_stream)
def stream_lives() -> dagster.AssetCheckResult:
    """Fails if no run holds the checkpoint of the stream."""
    command = [sys.executable, "-m", "penstock", "status", "/data/checkpoint", "--json"]
    status = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    kept = {name: status[name] for name in ("holder", "finished", "planned_at")}
    return dagster.AssetCheckResult(passed=status["life"] == "running", metadata=kept)


definitions = dagster.Definitions(
    assets=[daily_scores, scores_stream],
    asset_checks=[stream_lives],
    schedules=[
        dagster.build_schedule_from_partitioned_job(
            dagster.define_asset_job("daily", selection=[daily_scores], partitions_def=DAYS)
        )
    ],
)
