"""What a server does on Spark by itself: it starts Spark, and follows the streams of the program."""

from __future__ import annotations

import logging
import threading
import time

from vigilog.core.errors import DataError, VigilogError
from vigilog.core.extras import SPARK
from vigilog.engine.places import streams
from vigilog.folder.durable import Durable
from vigilog.folder.reading.distant import begin
from vigilog.service.background import LONGEST_PAUSE, Background
from vigilog.spark import session

log = logging.getLogger("vigilog.service")
LOOK_EVERY = 1.0  # seconds between two looks at the streams


class SparkWork(threading.Thread):
    """Spark starts, and its part of the views is prepared, while the server answers already; then the streams are followed. One that ends is begun again where it was left, after a pause."""

    def __init__(self, db: Durable, background: Background, *, wanted: bool) -> None:
        """With `wanted`, Spark is started although nothing needs it yet."""
        super().__init__(name="spark", daemon=True)
        self.db, self.background, self.wanted = db, background, wanted
        self.begun: dict[str, float] = {}  # since when streams go well
        self.due: dict[str, float] = {}  # when those that failed are begun again
        self.prepared = False  # whether Spark's part of the views has begun
        self.stopping = threading.Event()

    def run(self) -> None:
        session.listen(self._heard)
        pause = 0.0
        while not self.stopping.wait(pause):
            try:
                self._look()
            except Exception as reason:
                pause = self._failed("spark", reason)
            else:
                self.background.well("spark")
                pause = LOOK_EVERY

    def _heard(self, end: DataError | None) -> None:
        """Whoever starts Spark again: /health tells it until it is there."""
        if end is None:
            self.background.well("spark")
            log.info("Spark has started again")
        else:
            self.prepared = False
            self._failed("spark", end)

    def _failed(self, work: str, reason: Exception) -> float:
        return 0.0 if self.stopping.is_set() else self.background.failed(work, reason)

    def _look(self) -> None:
        followed = streams(self.db.program)
        if (followed or self.db.large or (self.wanted and SPARK.installed)) and not session.alive():
            try:
                session.session()
                log.info("Spark has started")
            except VigilogError as reason:
                if followed or self.db.large:
                    raise
                log.error("Spark is not there: what needs it will fail", extra={"reason": reason.message})
            self.wanted = False
        if self.db.large and not self.prepared:
            self.prepared = True
            begin(self.db)
        for relation in followed:
            try:
                self._look_after(relation, time.monotonic())
            except Exception as reason:
                self.due[relation] = time.monotonic() + self._failed(f"stream {relation}", reason)

    def _look_after(self, relation: str, now: float) -> None:
        """Begins a stream that is not there. Raises why one has failed, once."""
        stream = next((stream for stream in self.db.streams() if stream.relation == relation), None)
        if relation in self.begun and stream is not None:
            if stream.error is not None or not stream.active:
                del self.begun[relation]
                raise stream.error or DataError(f"the stream of {relation} has ended", "stream")
            if now - self.begun[relation] > LONGEST_PAUSE:
                self.background.well(f"stream {relation}")
        elif now >= self.due.get(relation, 0.0):
            self.db.stream(relation)
            self.begun[relation] = now
            log.info("following a stream", extra={"relation": relation})
