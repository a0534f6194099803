"""What one client may ask for, so that others are served, too."""

from __future__ import annotations

from dataclasses import dataclass

from vigilog.executors.allowance import Allowance


@dataclass(frozen=True)
class Limits:
    """The settings of `vigilog serve --limit NAME=NUMBER`; each has its place in docs/service.md."""

    body: int = 64 * 2**20  # bytes of a request's body
    message: int = 2**20  # bytes of a client's message on a WebSocket
    rows: int = 1_000_000  # rows in one transaction
    derived: int = 10_000_000  # rows that are derived for one answer
    goal: int = 2_000  # characters of a goal; planning a long one takes long
    bytes: int = 512 * 2**20  # that what is derived for one answer takes in memory
    seconds: float = 60  # that one answer takes
    query_derived: int = 1_000_000  # rows that are derived for one followed goal in one transaction; for all of them, four times as many
    query_bytes: int = 128 * 2**20  # that these take in memory
    query_seconds: float = 5  # that this takes
    text: int = 16 * 2**20  # bytes of a text, or a set, that is derived for an answer or a followed goal
    subscriptions: int = 20_000  # of one token
    rate: float = 2_000  # requests a second of one token
    answers: int = 2  # first answers that are computed at once
    queries: int = 100  # goals that are followed at once
    pending: int = 10_000  # rows that wait in memory for one client; what is more waits on the disk
    part: int = 5_000  # rows in one part of a first answer
    large: int = 10_000  # rows of one side of a change from which it is named, and fetched, instead of sent
    progress: float = 2  # seconds after which an idle client is told how far all is
    heartbeat: float = 15  # seconds after which it is told, news or not
    silence: float = 10  # seconds that a client has to say its token
    ping: float = 20  # seconds after which a connection is asked whether it is there, and those that it has to answer
    forget_queries: float = 600  # seconds after which a goal that nobody follows any more is dropped

    @property
    def answer(self) -> Allowance:
        """What one answer may cost."""
        return Allowance(self.derived, self.bytes, self.seconds, self.text)

    @property
    def query(self) -> Allowance:
        """What one followed goal may cost in a transaction."""
        return Allowance(self.query_derived, self.query_bytes, self.query_seconds, self.text)
