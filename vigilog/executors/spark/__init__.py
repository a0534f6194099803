"""The Spark executor: DataFrame and SQL API only, so that it runs on one machine, on a cluster and through Spark Connect alike."""

from vigilog.core.extras import SPARK

SPARK.need()
