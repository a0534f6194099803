"""What Prometheus is told."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """One registry for each server, so that several can be in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(f"vigilog_{name}", text, labels, registry=self.registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"vigilog_{name}", text, registry=self.registry)

        self.commits = counter("commits", "Transactions that were committed, by the executor that maintained the views.", ("engine",))
        self.refused = counter("refused", "Requests that were refused.", ("code",))
        self.failures = counter("background_failures", "Failures of what goes on by itself, by the work that failed.", ("work",))
        self.recomputed = counter("recomputed", "Transactions that were answered by recomputing.")
        self.given_up = counter("queries_dropped", "Followed goals that were dropped because they cost too much in a transaction.")
        self.deltas = counter("delta_rows", "Rows that views gained and lost.", ("view", "side"))
        self.delivered = counter("changes_delivered", "Changes that were sent to subscribers.")
        self.latency = Histogram("vigilog_commit_seconds", "From a request to its durable commit.", buckets=SECONDS, registry=self.registry)
        self.subscribers = gauge("subscribers", "Subscriptions that are connected.")
        self.behind = gauge("subscribers_behind", "Subscriptions that are served from the disk.")
        self.lag = gauge("subscriber_lag_transactions", "How many transactions the slowest subscription is behind.")
        self.tx = gauge("transaction", "The number of the last transaction.")
        self.outbox_changes = gauge("outbox_changes", "Changes of views that are retained.")
        self.outbox_bytes = gauge("outbox_bytes", "Bytes of the changes of views that are retained.")

    def text(self, look: Callable[[], None]) -> bytes:
        """All of it, after a look at what is not counted as it happens."""
        look()
        return generate_latest(self.registry)
