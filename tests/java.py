"""How tests run Java. It is apart from all that needs pytest, for processes that are started with warnings as errors."""

from __future__ import annotations

JAVA = "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=512m -XX:TieredStopAtLevel=1"  # little data, but thousands of plans: little is worth compiling well
