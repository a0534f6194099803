"""The document at /openapi.json describes what the server does: every status, every body, whatever is sent."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from tests.service.serving import Served
from vigilog.engine.transaction import OPERATIONS
from vigilog.protocol.calls import Transaction
from vigilog.protocol.messages import Qos, Subscribe

pytestmark = pytest.mark.apart

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
    negative_data_rejection,
]
NUMBERS = count()
VIEWS = ["closure", "open", "degree", "none"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("openapi"), "--limit", "rate=100000").start()
    server.insert(("a", "b"), ("b", "c"))
    yield server
    server.kill()
    assert server.mistakes() == []


@pytest.fixture(scope="module")
def document(served: Served) -> Any:
    return schemathesis.openapi.from_url(f"{served.url}/openapi.json").exclude(path="/v1/changes")  # whose answer does not end


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: Any) -> Any:
    """Names that there are, now and then: most random ones are of nothing."""
    if path_parameters and "view" in path_parameters and len(str(path_parameters["view"])) < 4:
        path_parameters["view"] = VIEWS[len(str(path_parameters["view"]))]
    return path_parameters


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_calls_are_as_described(document: Any, mode: GenerationMode) -> None:
    """Calls that fit the document, and calls that do not."""
    for found in document.get_all_operations():
        try:
            check_operation(found.ok(), mode)
        except Unsatisfiable:
            assert mode == GenerationMode.NEGATIVE, "a call that takes nothing cannot be wrong"


def check_operation(operation: Any, mode: GenerationMode) -> None:
    @settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        if key := (case.headers or {}).get("idempotency-key"):
            case.headers["idempotency-key"] = (
                f"{key}{next(NUMBERS)}"  # one that was used is answered as it was then, whatever comes with it
            )
        case.call_and_validate(checks=CHECKS)

    check()


def test_every_call_of_the_protocol_is_described(served: Served) -> None:
    paths = served.get("/openapi.json")["paths"]
    for method, path in [
        ("post", "/v1/transactions"),
        ("get", "/v1/views"),
        ("get", "/v1/views/{view}"),
        ("get", "/v1/views/{view}/changes/{tx}"),
        ("post", "/v1/ask"),
        ("get", "/v1/why"),
        ("get", "/v1/program"),
        ("post", "/v1/definitions"),
        ("delete", "/v1/definitions/{name}"),
        ("post", "/v1/loads"),
        ("post", "/v1/refresh"),
        ("get", "/v1/overrides"),
        ("get", "/v1/status"),
        ("get", "/v1/subscriptions"),
        ("delete", "/v1/subscriptions/{name}"),
        ("get", "/v1/changes"),
        ("get", "/"),
        ("get", "/health"),
        ("get", "/metrics"),
    ]:
        assert method in paths[path]


def test_the_operations_of_a_transaction_are_described() -> None:
    assert set(Transaction.__struct_fields__) == {*OPERATIONS, "refresh", "withdraw"}


def test_what_a_call_takes_need_not_say_that_it_is_json(served: Served) -> None:
    """As `curl -d` sends it."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    found = served.call("POST", "/v1/ask", content=b'{"goal": "edge(x, y)"}', headers=form)
    assert found.status_code == 200 and len(found.json()["columns"]) == 2, found.text
    page = served.call("POST", "/v1/ask", content=b'{"goal": "edge(x, y)"}', headers=form | {"Origin": served.url})
    assert page.status_code == 400 and page.json()["error"]["code"] == "json", "a page could send that without being asked"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("ask", b'{"goal": 7}'),
        ("ask", b'{"goal": "edge(x, y)", "at": -1}'),
        ("ask", b'{"goal": "edge(x, y)", "at": 1180591620717411303424}'),
        ("ask", b'{"goal": "edge(x, y)", "at": 1.5}'),
        ("ask", b'{"goal": "edge(x, y)", "at": true}'),
        ("ask", b'{"goal": "edge(x, y)", "of": 1}'),
        ("ask", b"[]"),
        ("ask", b"{"),
        ("ask", b"\xff"),
        ("ask", b'{"goal": ' + b"[" * 100_000),
        ("definitions", b"{}"),
        ("loads", b'{"relation": "edge"}'),
        ("refresh", b'{"domain": "d"}'),
    ],
)
def test_a_body_that_is_none_of_the_call(served: Served, path: str, body: bytes) -> None:
    found = served.call("POST", f"/v1/{path}", content=body)
    assert found.status_code == 400 and found.json()["error"]["code"] == "message", found.text
    assert "this is no body of this call" in found.json()["error"]["message"]


def test_the_parameters_of_a_subscription_are_described(served: Served) -> None:
    described = {parameter["name"]: parameter for parameter in served.get("/openapi.json")["paths"]["/v1/changes"]["get"]["parameters"]}
    members = {field.encode_name for kind in (Qos, Subscribe) for field in msgspec.structs.fields(kind)}
    assert members - {"views", "bind", "qos", "snapshot"} == described.keys() - {"Last-Event-ID"}, "all that can be said in a query"
    for name, parameter in described.items():
        schema = parameter["schema"]
        if schema["type"] in ("number", "integer") or "enum" in schema or "pattern" in schema:
            headers, query = ({name: "?"}, "") if parameter["in"] == "header" else ({}, f"&{name}=?")
            assert served.call("GET", f"/v1/changes?view=closure{query}", headers=headers).status_code == 400, name
