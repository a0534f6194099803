"""The administration of a view frame's objects (Staudt, Jarke, Quix 1996, figure 3): what has come on the channel of notifications is applied when the program says so."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from vigilog.client.events import Change, Event, Snapshot, Subscribed
from vigilog.client.objects import Event as Happening
from vigilog.client.objects import Graph, Object, attribute_name
from vigilog.client.subscription import Subscription
from vigilog.client.wishes import wish
from vigilog.core.errors import DataError, UsageError
from vigilog.protocol.shapes import Part, Shape

if TYPE_CHECKING:
    from types import TracebackType

    from vigilog.client.answers import Answer, Receipt
    from vigilog.client.synchronous import Changes, Client

log = logging.getLogger("vigilog.client")
C = TypeVar("C", bound=Callable[..., Any])


class ViewAdmin:
    """The objects of a view frame, and the channel that tells what becomes of them. Its life: the first extraction, then patches, until it is closed.

    Only `process_update_message` changes objects, in the thread of its caller; `run` calls it in a thread of its own.
    """

    frame: ClassVar[str] = ""  # of generated classes: the view frame,
    classes: ClassVar[Mapping[str, type[Object]]] = {}  # the classes of its parts, by their names,
    structure: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # and what attributes these had when they were generated

    def __init__(self, client: Client, frame: str = "", **wishes: Any) -> None:
        from vigilog.client.synchronous import Changes

        if wishes.get("precision", "rows") != "rows":
            raise UsageError("objects are patched by rows; less precision is for subscribe")
        self.client, self.name = client, frame or self.frame
        self.changes: Changes = Changes(client, Subscription(wish(self.name, frame=True, anew=True, **wishes), renews=True))
        self.position = -1
        self.error: Exception | None = None
        self._callbacks: dict[tuple[str, type[Object], str], list[Callable[..., Any]]] = {}
        self._failed: list[Callable[[Exception], Any]] = []
        self._thread: threading.Thread | None = None
        self.graph: Graph
        try:
            self._extract()
        except BaseException:
            self.close()
            raise

    def _extract(self) -> None:
        """The first extraction."""
        while self.position < 0:
            event = self.changes.get()
            if event is None:
                raise DataError(f"the subscription of {self.name} has ended", "closed")
            self._take(event)

    @property
    def objects(self) -> dict[Any, Any]:
        """The main objects by id; of a view with parameters by parameters and id."""
        return self.graph.objects

    # -- the paper's interface

    def tell(self, *args: Any, **operations: Any) -> Receipt:
        return self.client.tell(*args, **operations)

    def ask(self, goal: str, at: int | None = None) -> Answer:
        return self.client.ask(goal, at)

    def get_notification_message(self, timeout: float | None = None) -> Event | None:
        """The next thing that happens on the channel, as it comes; None if nothing does in so many seconds. What is taken here patches no object."""
        return self.changes.get(timeout)

    def process_update_message(self, timeout: float | None = None) -> int:
        """Applies what has come, at least one message if one comes in time; gives the number of transactions, 0 on timeout. `0` polls, `None` waits."""
        deadline = None if timeout is None else time.monotonic() + timeout
        applied = 0
        while True:
            left = 0.0 if applied else None if deadline is None else max(0.0, deadline - time.monotonic())
            if (event := self.changes.get(left)) is None:
                return applied
            applied += self._take(event)

    def run(self) -> None:
        """Applies what comes, in a thread of its own, until the administration is closed."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"vigilog frame {self.name}", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            for event in self.changes.events():
                self._take(event)
        except Exception as error:
            self._trouble(error)

    # -- what comes

    def _take(self, event: Event) -> int:
        match event:
            case Subscribed(frame=Shape() as shape):
                self._know(shape)
            case Snapshot():
                first = self.position < 0
                happened = self.graph.replace(event.views)
                self.position = event.tx
                if not first:
                    self._tell(happened)
                return int(bool(happened) and not first)
            case Change():
                happened = self.graph.apply(event.views)
                self.position = event.tx
                self._tell(happened)
                return 1
            case _:
                pass
        return 0

    def _know(self, shape: Shape) -> None:
        """The structure of the frame. One that changed while the objects lived cannot be patched into them."""
        if hasattr(self, "graph"):
            if self.graph.shape != shape:
                raise DataError(
                    f"{self.name} has other attributes now: {_differences(self.graph.shape, shape)}; make its objects anew", "redefined"
                )
            return
        if self.structure:
            told = {name: tuple(attribute_name(slot.label) for slot in part.slots) for name, part in shape.parts.items()}
            different = [
                f"{name} has {', '.join(told.get(name, ())) or 'no attributes'} now, and had {', '.join(self.structure.get(name, ())) or 'none'}"
                for name in dict.fromkeys([*told, *self.structure])
                if told.get(name) != self.structure.get(name)
            ]
            if different:
                raise DataError(f"these classes were generated for another version of {self.name}: {'; '.join(different)}", "redefined")
        self.graph = Graph(shape, self.classes)

    # -- who is told

    def on_create(self, kind: type[Object]) -> Callable[[C], C]:
        """Calls back with each object of a class that comes: `@admin.on_create(Emp)`."""
        return self._on("create", kind, "")

    def on_delete(self, kind: type[Object]) -> Callable[[C], C]:
        return self._on("delete", kind, "")

    def on_link(self, kind: type[Object], label: str) -> Callable[[C], C]:
        """Calls back with an object and what it is linked to: `@admin.on_link(Emp, "dept")`."""
        return self._on("link", kind, label)

    def on_unlink(self, kind: type[Object], label: str) -> Callable[[C], C]:
        return self._on("unlink", kind, label)

    def on_error(self, callback: C) -> C:
        """Calls back with what another callback raised, or with what ended `run`."""
        self._failed.append(callback)
        return callback

    def _on(self, what: str, kind: type[Object], label: str) -> Callable[[C], C]:
        def added(callback: C) -> C:
            self._callbacks.setdefault((what, kind, label), []).append(callback)
            return callback

        return added

    def _tell(self, happened: list[Happening]) -> None:
        """Calls back. All of the transaction is applied by now, so nobody sees half of it."""
        for event in happened:
            for callback in self._callbacks.get((event.kind, type(event.object), event.label), ()):
                try:
                    callback(event.object, *([event.other] if event.label else []))
                except Exception as error:
                    self._trouble(error)

    def _trouble(self, error: Exception) -> None:
        """A callback has failed. The objects are right all the same."""
        log.error("a callback of a frame failed", exc_info=error)
        self.error = error
        for callback in self._failed:
            callback(error)

    # -- its life

    def close(self) -> None:
        """Ends it; the objects stay as they are."""
        self.changes.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _differences(old: Shape, new: Shape) -> str:
    def said(part: Part | None) -> set[str]:
        return {slot.label for slot in part.slots} if part is not None else set()

    found = []
    for name in dict.fromkeys([*old.parts, *new.parts]):
        before, after = said(old.parts.get(name)), said(new.parts.get(name))
        found += [f"{name}.{label} is gone" for label in sorted(before - after)] + [
            f"{name}.{label} is new" for label in sorted(after - before)
        ]
    return ", ".join(found) or "their types differ"
