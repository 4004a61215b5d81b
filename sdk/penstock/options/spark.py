"""The view of the Spark runner's options."""

from __future__ import annotations

from penstock.options import table
from penstock.options.base import PipelineOptions
from penstock.options.optimisations import OPTIMISATIONS
from penstock.options.spark_properties import parse_spark_properties, read_properties


class SparkOptions(PipelineOptions):
    """The options of the Spark runner. `SparkRunnerOptions`, Beam's name, is the same class.

    >>> options = PipelineOptions(["--master=local[2]", "--spark_conf=spark.ui.enabled=false"])
    >>> spark = options.view_as(SparkOptions)
    >>> spark.master_url(), spark.properties()
    ('local[2]', {'spark.ui.enabled': 'false'})
    """

    _records = table.SPARK

    def master_url(self) -> str | None:
        """Returns the master URL under either name; None if neither is set."""
        url: str | None = self.master or self.spark_master_url
        return url

    def session(self) -> object:
        """Returns the session that the program passes, as in ``Pipeline(spark=session)``; None without one."""
        return self._all_options.get("spark")

    def properties(self) -> dict[str, str]:
        """Returns the Spark properties."""
        in_file = read_properties(self.spark_conf_file) if self.spark_conf_file else {}
        return in_file | parse_spark_properties(self.spark_conf)

    def switched_off(self) -> frozenset[str]:
        """Returns the names of the optimisations that are switched off; ``all`` stands for all of them."""
        names = frozenset(self.without or ())
        return frozenset(OPTIMISATIONS) if "all" in names else names

    def views(self) -> list[str]:
        """Returns the options that ask for a view of the run."""
        given = {"live": bool(self.live), "live_port": self.live_port is not None}
        return [name for name, is_given in given.items() if is_given]


SparkRunnerOptions = SparkOptions
