"""Functions of an HTTP service: `GET URL/f?city=…` answers an array of objects. What a function takes and gives is stated by `.function`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from vigilog.core.errors import did_you_mean
from vigilog.core.values import Row
from vigilog.domains.domain import TIMEOUT, Columns, DomainError, Options, Signature, checked, with_variables
from vigilog.domains.options import patience
from vigilog.domains.retries import TransientError, retried

if TYPE_CHECKING:
    import httpx

BUSY = (408, 429)  # who answers this can be asked again


class Rest:
    """A domain whose functions are paths of a server."""

    def __init__(self, name: str, options: Options, functions: dict[str, Signature]) -> None:
        self.name, self.options, self.functions = name, options, functions

    def fixed(self, function: str) -> int:
        self.signature(function, ())
        return 0

    def signature(self, function: str, fixed: Sequence[str]) -> Signature:
        if function not in self.functions:
            hint = did_you_mean(function, self.functions) or f"state it: .function {self.name}:{function}(…) -> (…)"
            raise DomainError(self.name, f"there is no function {function} ({hint})")
        return self.functions[function]

    def ask(self, function: str, fixed: Sequence[str], arguments: Sequence[Row]) -> list[set[Row]]:
        import httpx

        signature = self.signature(function, fixed)
        address = f"{with_variables(self.options['url']).rstrip('/')}/{function}"
        answers = []
        with httpx.Client(timeout=patience(self.options, TIMEOUT)) as client:
            for row in arguments:
                texts = {name: type_.text(cell) for (name, type_), cell in zip(signature.parameters, row, strict=True)}
                answers.append(retried(self.options, partial(self._answer, client, address, texts, signature.results)))
        return answers

    def _answer(self, client: httpx.Client, address: str, texts: dict[str, str], columns: Columns) -> set[Row]:
        import httpx

        try:
            answer = client.get(address, params=texts)
            answer.raise_for_status()
            rows = answer.json()
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise DomainError(self.name, f"{address} answers no array of objects")
            told = [[None if row.get(name) is None else type_.from_json(row[name]) for name, type_ in columns] for row in rows]
            return checked(self.name, address, columns, told, self.options)
        except httpx.HTTPStatusError as reason:
            asked_wrongly = reason.response.is_client_error and reason.response.status_code not in BUSY
            raise (DomainError if asked_wrongly else TransientError)(self.name, f"{address}: {reason}") from None
        except (httpx.HTTPError, ValueError) as reason:
            raise TransientError(self.name, f"{address}: {reason or type(reason).__name__}") from None
