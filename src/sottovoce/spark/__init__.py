"""The same comparison, release and estimate on a Spark DataFrame, for tables that need a cluster.

Spark brings all records of a person to one place and counts them; there Arrow batches go into the very
functions that run in one process (`tally`, the samplers, the mechanisms). A table is read and shuffled once.

    from sottovoce import spark
    table = spark.compare(frame, samplers, [sv.TV], user="device", item="site")
    spark.release(frame, mechanism, "reports.parquet", user="device", item="site", ledger=ledger, epoch="11")
    found = spark.estimate(session.read.parquet("reports.parquet"), mechanism, user="device", item="site")

Needs pyspark 4 and Java 17, and sottovoce installed wherever Spark runs Python.
"""

from .compare import compare
from .estimate import estimate
from .release import release

__all__ = ["compare", "estimate", "release"]
