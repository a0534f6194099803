"""Where the story is played: a server, those who hold its views, and what the base relations must be by now."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from examples.company.changes import Operations, happen
from examples.company.data import Row, write
from examples.company.processes import Holder, Server
from vigilog.client import Client, Receipt, connect
from vigilog.core.errors import VigilogError
from vigilog.core.proofs import Proof

COLOURS = ("cyan", "magenta", "yellow", "blue")


def chapter(console: Console, title: str) -> None:
    console.print()
    console.rule(f"[bold]{title}", align="left")


class Stage:
    """Use it in a `with`, which ends all its processes."""

    def __init__(self, console: Console, folder: Path, base: dict[str, set[Row]], origins: Iterable[str] = ()) -> None:
        self.console, self.folder, self.base, self.origins = console, folder, base, tuple(origins)
        self.holders: list[Holder] = []
        self.tx = 0
        self.ending = ExitStack()

    def __enter__(self) -> Stage:
        self.server = self._served(0)
        self.url = self.server.listening()
        self.client: Client = self.ending.enter_context(connect(self.url))
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.close()

    def _served(self, port: int) -> Server:
        server = Server(self.folder, port, self.origins)
        self.ending.callback(server.end)
        return server

    # -- who holds views

    def hold(self, name: str, view: str, bind: dict[str, str] | None = None) -> None:
        """Starts a client in a process of its own."""
        environment = {"COLUMNS": str(self.console.width - 14)} | ({"FORCE_COLOR": "1"} if self.console.is_terminal else {})
        holder = Holder(self.folder, name, self.url, view, bind or {}, environment)
        self.ending.callback(holder.end)
        self.holders.append(holder)

    def follow(self, tx: int) -> None:
        """Shows what each client says until all have come to a transaction."""
        silent = True
        for holder, colour in zip(self.holders, COLOURS, strict=True):
            for line in holder.come_to(tx):
                silent = False
                self.console.print(Text(f"{holder.name:>11} │ ", colour) + Text.from_ansi(line), no_wrap=True, crop=True)
        if silent:
            self.console.print("            no client holds anything that changed", style="dim")

    # -- what happens

    def tell(self, event: str, operations: Operations) -> None:
        """Sends a transaction; shows what became of it, and what each client was told."""
        self._announce(event, operations)
        began = time.perf_counter()
        try:
            told = self.client.tell(operations)
        except VigilogError as error:
            self.console.print(Text("refused", "red").append(f" ({error.code}): {error}", "default"))
            self.console.print(f"Nothing of it has happened: all is as of transaction {self.client.view('leaderless').tx}.", style="dim")
            return
        happen(self.base, operations)
        self._committed(told, time.perf_counter() - began)

    def load(self, event: str, relation: str, rows: list[Row]) -> None:
        """Has the server load a file of rows."""
        file = self.folder / "more"
        file.mkdir(exist_ok=True)
        number = write(file, {relation: rows})[relation]
        said = {"relation": relation, "source": str(file / f"{relation}.parquet")}
        self.console.print(event)
        self.console.print(f"POST /v1/loads {json.dumps(said)}", style="dim", overflow="ellipsis", no_wrap=True)
        began = time.perf_counter()
        with self.console.status(f"Spark takes in {number:,} rows …"):
            answer = httpx.post(f"{self.url}/v1/loads", json=said, timeout=300)
        answer.raise_for_status()
        self.base[relation].update(rows)
        counts = {view: (sides["plus"], sides["minus"]) for view, sides in answer.json()["views"].items()}
        self._committed(Receipt(answer.json()["tx"], counts), time.perf_counter() - began)

    def kill(self, event: str, operations: Operations) -> None:
        """Kills the server; what is told while it is dead is done, once, when another has taken its place."""
        self.server.kill()
        self.console.print(f"kill -9 {self.server.process.pid}", style="bold red")
        self._announce(event, operations)
        began = time.perf_counter()
        with ThreadPoolExecutor(1) as pool, self.console.status("the server comes back …"):
            telling = pool.submit(self.client.tell, operations)
            self.server = self._served(self.server.port)
            self.server.listening()
            self.console.print(f"the server is back after {time.perf_counter() - began:.1f} s: same folder, same port")
            told = telling.result()
        happen(self.base, operations)
        self._committed(told, time.perf_counter() - began)
        back = self.client.status()["subscribers"]
        self.console.print(f"{back} of {len(self.holders)} clients have come back by themselves, and went on where they were")

    def why(self, goal: str) -> None:
        """Shows a proof."""
        proof = self.client.why(goal)
        self.console.print(f"[bold]Why?[/bold] [dim]GET /v1/why?goal={goal}[/dim]")
        if proof is not None:
            self.console.print(_tree(proof))

    def _announce(self, event: str, operations: Operations) -> None:
        self.console.print(event)
        self.console.print(f"POST /v1/transactions {json.dumps(operations)}", style="dim", markup=False)

    def _committed(self, told: Receipt, seconds: float) -> None:
        took = f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
        counts = ", ".join(f"{view} +{plus:,} -{minus:,}" for view, (plus, minus) in told.views.items())
        self.console.print(f"[green]transaction {told.tx}[/green], durable after {took}: {counts or 'no view changed'}")
        self.tx = told.tx
        self.follow(told.tx)


def _tree(proof: Proof, above: Tree | None = None) -> Tree:
    """A proof: each literal with the body of the rule that it follows by, over what it follows from."""
    line = Text(proof.literal, no_wrap=True, overflow="ellipsis").append(
        f"   {proof.rule[proof.rule.find(':-') :]}" if proof.rule else "", "dim"
    )
    tree = above.add(line) if above else Tree(line)
    for part in proof.because:
        _tree(part, tree)
    return tree
