"""What both faces have in common: a client's settings, and a subscription as it is followed; who waits, and how, is up to the face."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from vigilog.client.columns import Columns
from vigilog.client.effects import Running
from vigilog.client.server import Server
from vigilog.client.subscription import Subscription, follow
from vigilog.protocol.messages import Mark


class Calling:
    """A client of a server."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        patience: float = 30.0,
        timeout: float = 300.0,
        tls: ssl.SSLContext | None = None,
        tool: str | None = None,
    ) -> None:
        """`patience` is how many seconds a call waits for a server that was there and is not any more; `timeout` how many it waits for an answer; `tool` is what the server's log and status call this program."""
        self.server = Server(url, token, patience, timeout, tls, tool)
        self._begin()

    def _begin(self) -> None:
        """Makes what a face needs beside that."""


class Follower:
    """A subscription that is followed over a connection, if there is one now."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription, self._running = subscription, Running(follow(subscription))
        self._socket: Any = None
        self._given, self._well = False, True

    @property
    def position(self) -> int | None:
        """The last transaction that is known to be in what was given."""
        return self._subscription.position

    @property
    def mark(self) -> Mark | int | None:
        """The same with its digest, to go on from later (`since=…, db=…`): no other history of the database has it."""
        return self._subscription.mark

    @property
    def db(self) -> str:
        """The history that positions belong to."""
        return self._subscription.db

    @property
    def columns(self) -> Mapping[str, Columns]:
        """The columns of each view."""
        return self._subscription.columns

    @property
    def connected(self) -> bool:
        return self._socket is not None

    def hold(self) -> None:
        """What was given last is not dealt with: it is not acknowledged, nor what follows, until `ack` says so."""
        self._well = False

    def _go_on(self) -> None:
        """What was given last is dealt with."""
        if self._given:
            self._given = False
            well, self._well = self._well, True
            self._running.answer(well)
