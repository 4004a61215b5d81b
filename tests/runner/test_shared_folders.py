"""When a stream on a cluster is refused because a worker does not see its checkpoint, without Spark."""

from __future__ import annotations

import pytest

from penstock.error import RunnerError
from penstock_spark.session.classic.shared_folders import check_workers_see

CLUSTER = "spark://10.0.0.1:7077"


class Workers:
    """A cluster that computes in this process: one of its tasks in three is on a machine without the files."""

    def __init__(self, master, tasks, strangers=False):
        self.master, self.defaultParallelism, self.strangers = master, tasks, strangers
        self.asked = []

    def parallelize(self, values, tasks):
        self.asked = values
        assert len(values) == tasks
        return self

    def map(self, function):
        self.found = [
            function(value) and not (self.strangers and number % 3 == 2)
            for number, value in enumerate(self.asked)
        ]
        return self

    def collect(self):
        return self.found


@pytest.fixture
def plan(tmp_path):
    file = tmp_path / "plan-1.json"
    file.write_text("{}")
    return file


@pytest.mark.parametrize("beginning", ["file://", "file:"])
@pytest.mark.parametrize(("cores", "tasks"), [(0, 1), (3, 3), (4000, 32)])
def test_workers_that_see_the_file_are_asked_with_a_task_for_each_core(plan, beginning, cores, tasks):
    workers = Workers(CLUSTER, cores)
    check_workers_see(workers, f"{beginning}{plan}", "the folder")
    assert workers.asked == [str(plan)] * tasks


@pytest.mark.parametrize("strangers", [False, True], ids=["all workers", "one worker"])
def test_a_worker_that_does_not_see_the_file_is_an_error_that_names_the_checkpoint(plan, strangers):
    if not strangers:
        plan.unlink()
    with pytest.raises(
        RunnerError, match=r"(?s)does not see the checkpoint.*  in the checkpoint /data\n  hint: "
    ):
        check_workers_see(Workers(CLUSTER, 4, strangers), f"file://{plan}", "/data")


@pytest.mark.parametrize(("master", "file"), [("local[2]", "file:///gone"), (CLUSTER, "hdfs:///gone")])
def test_workers_of_this_machine_and_other_file_systems_are_not_asked(master, file):
    check_workers_see(Workers(master, 2), file, "the folder")
