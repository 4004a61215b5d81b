"""An Airflow DAG that runs a batch each day, and drains a stream each week before its program is updated.

Copy it into the folder of DAGs. The image penstock, or a virtual environment with penstock, must be where tasks run.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

PYTHON = "/opt/penstock/bin"
"""The folder of the environment's programs."""

with DAG(
    dag_id="penstock_daily_scores",
    schedule="@daily",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    tags=["penstock"],
):
    check = BashOperator(task_id="check_machine", bash_command=f"{PYTHON}/penstock doctor --quick")
    total = BashOperator(
        task_id="daily_scores",
        # A retry replaces the files of the failed try.
        bash_command=(
            f"{PYTHON}/python /opt/programs/daily_scores.py --mode=batch "
            "--input=/data/scores/{{ ds }} --output=/data/totals/{{ ds }}"
        ),
        # Airflow sends SIGTERM at the timeout: the batch cancels its jobs and removes its temporary files.
        execution_timeout=timedelta(hours=2),
    )
    check >> total

with DAG(
    dag_id="penstock_update_stream",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["penstock"],
):
    fits = BashOperator(
        task_id="does_it_fit",
        bash_command=(
            f"{PYTHON}/penstock update --check /data/checkpoint /opt/programs/scores.py "
            "--arguments --mode=streaming"
        ),
    )
    stop = BashOperator(
        task_id="cancel_the_run", bash_command=f"{PYTHON}/penstock cancel /data/checkpoint --wait"
    )
    fits >> stop
