"""The administration of a view frame's objects (Staudt, Jarke, Quix 1996, figure 3): what has come on the channel of notifications is applied when the program says so."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from vigilog.client.events import Change, Event, Snapshot, Subscribed
from vigilog.client.objects import Event as Happening
from vigilog.client.objects import Graph, Object
from vigilog.client.subscription import Subscription
from vigilog.client.wishes import wish
from vigilog.core.errors import DataError, UsageError
from vigilog.protocol.shapes import Shape, Structure, differences

if TYPE_CHECKING:
    from types import TracebackType

    from vigilog.client.answers import Answer, Receipt
    from vigilog.client.synchronous import Changes, Client

log = logging.getLogger("vigilog.client")
C = TypeVar("C", bound=Callable[..., Any])
Kind = type[Object] | str  # a class, or the name of a frame or subframe


class ViewAdmin:
    """The objects of a view frame, and the channel that tells what becomes of them. Its life: the first extraction, then patches, until it is closed.

    Only `process_update_message` changes objects, in the thread of its caller; `run` calls it in a thread of its own.
    """

    frame: ClassVar[str] = ""  # of generated classes: the view frame,
    classes: ClassVar[Mapping[str, type[Object]]] = {}  # the classes of its parts, by their names,
    structure: ClassVar[Structure] = {}  # and what was known of these when they were generated

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
        self._seen: deque[Event] = deque()  # what was asked for, and is not applied yet
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
    def objects(self) -> Mapping[Any, Any]:
        """The main objects as they are now, by id; of a view with parameters by parameters and id."""
        return self.graph.objects

    # -- the paper's interface

    def tell(self, *args: Any, **operations: Any) -> Receipt:
        return self.client.tell(*args, **operations)

    def ask(self, goal: str, at: int | None = None) -> Answer:
        return self.client.ask(goal, at)

    def get_notification_message(self, timeout: float | None = None) -> Change | Snapshot | None:
        """The next change, or the new first answer after a gap; None if none comes in so many seconds. It patches nothing yet: `process_update_message` will."""
        deadline = _deadline(timeout)
        while (event := self.changes.get(_left(deadline))) is not None:
            self._seen.append(event)
            if isinstance(event, Change | Snapshot):
                return event
        return None

    def process_update_message(self, timeout: float | None = None) -> int:
        """Applies what has come, at least one message if one comes in time; gives the number of transactions, 0 on timeout. `0` polls, `None` waits."""
        deadline, applied = _deadline(timeout), 0
        while self._seen:
            applied += self._take(self._seen.popleft())
        while (event := self.changes.get(0.0 if applied else _left(deadline))) is not None:
            applied += self._take(event)
        return applied

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
            if different := differences(self.graph.shape.structure, shape.structure):
                raise DataError(f"{self.name} has other attributes now: {different}; make its objects anew", "redefined")
            return
        if self.structure and (different := differences(self.structure, shape.structure)):
            raise DataError(f"these classes were generated for another version of {self.name}: {different}", "redefined")
        self.graph = Graph(shape, self.classes)

    # -- who is told

    def on_create(self, kind: Kind) -> Callable[[C], C]:
        """Calls back with each object of a class that comes: `@admin.on_create(Emp)`, or, where no class was generated, `"Emp"`."""
        return self._on("create", kind, "")

    def on_delete(self, kind: Kind) -> Callable[[C], C]:
        return self._on("delete", kind, "")

    def on_link(self, kind: Kind, label: str) -> Callable[[C], C]:
        """Calls back with an object and what it is linked to: `@admin.on_link(Emp, "dept")`."""
        return self._on("link", kind, label)

    def on_unlink(self, kind: Kind, label: str) -> Callable[[C], C]:
        return self._on("unlink", kind, label)

    def on_error(self, callback: C) -> C:
        """Calls back with what another callback raised, or with what ended `run`."""
        self._failed.append(callback)
        return callback

    def _on(self, what: str, kind: Kind, label: str) -> Callable[[C], C]:
        class_ = self.graph.classes.get(kind) if isinstance(kind, str) else kind
        if class_ is None or class_ not in self.graph.classes.values():
            raise UsageError(f"{self.name} has no class {kind}; it has {', '.join(self.graph.classes)}")
        labels = [name for name, _ in class_.labels]
        if label and label not in labels:
            raise UsageError(f"{class_.__name__} has no attribute {label}; it has {', '.join(labels) or 'none'}")

        def added(callback: C) -> C:
            self._callbacks.setdefault((what, class_, label), []).append(callback)
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


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())
