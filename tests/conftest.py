"""What all tests share: the settings of the one Spark session."""

from __future__ import annotations

import os

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # many small plans, little data: compile little

os.environ.setdefault("VIGILOG_SPARK_CONF", f"spark.driver.extraJavaOptions={QUICK}")
