"""The same release on a Spark DataFrame, for tables that need a cluster.

Spark brings all records of a person to one place and counts them; there Arrow batches go into the very
functions that run in one process. A table is read and shuffled once.

    from sottovoce import spark
    spark.release(frame, mechanism, "reports.parquet", user="device", item="site", ledger=ledger, epoch="11")

Priors come from `sottovoce.build_prior`, which takes a Spark frame too. Needs pyspark 4 and Java 17, and
sottovoce installed wherever Spark runs Python.
"""

from .release import release

__all__ = ["release"]
