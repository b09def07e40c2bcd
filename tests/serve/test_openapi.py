"""The document says what is served, and what is served keeps to the document."""

from __future__ import annotations

import re
from typing import Any

import pytest
from httpx2 import AsyncClient
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import BaseModel

from onefold.actuators.declare import actuator
from onefold.actuators.run import Run
from onefold.serve import Front
from onefold.serve.openapi import document
from onefold.terms.instant import moment
from tests.serve.conftest import keyed
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import NOW, JournalRow, OpenApproval, ParkedItem, waiting_for_manager

FOR_PEOPLE = re.compile(r"/(console.*|approve.*)?")
FOR_OTHERS = (
    "/mcp",
    "/tools/{name}/mcp",
    "/openapi.json",
    "/metrics",
    "/fleet/turns",
    "/fleet/look",
    "/fleet/nudge",
    "/tools/{name}",
    "/hooks/{name}",
)


class Tree(BaseModel):
    name: str
    below: list[Tree] = []


class Plot(BaseModel):
    trees: list[Tree]


@actuator
async def plant(run: Run, plot: Plot) -> Plot:
    """Plant trees."""
    return plot


def test_the_document_is_valid() -> None:
    for host in (FakeHost(), FakeHost(keyed()), FakeHost(actuators=[plant])):
        assert list(OpenAPIV31SpecValidator(document(host)).iter_errors()) == []


def test_a_type_that_contains_itself_points_into_the_document() -> None:
    made = document(FakeHost(actuators=[plant]))
    text = str(made)
    assert "#/$defs/" not in text
    for target in set(re.findall(r"#/components/schemas/([\w.]+)", text)):
        assert target in made["components"]["schemas"]


def test_every_operation_is_named_once_and_tools_by_their_own_name() -> None:
    made = document(FakeHost())
    ids = [one["operationId"] for path in made["paths"].values() for one in path.values()]
    assert len(ids) == len(set(ids))
    assert {"refund_order", "slow_report", "nightly", "refund_order_hook", "paid_hook"} <= set(ids)


def test_the_document_lists_exactly_the_routes_there_are(host: FakeHost, front: Front) -> None:
    served = {
        (route.path, route.method.lower())
        for route in front.table.routes
        if not FOR_PEOPLE.fullmatch(route.path) and route.path not in FOR_OTHERS
    }
    told = {(path, method) for path, one in document(host)["paths"].items() for method in one}
    own = {(f"/tools/{name}", "post") for name in host.catalog.actuators}
    own |= {(f"/hooks/{name}", "post") for name, one in host.catalog.actuators.items() if one.webhook}
    assert told == served | own


def test_keys_are_asked_for_where_there_are_keys() -> None:
    assert document(FakeHost(keyed()))["security"] == [{"key": []}]
    assert "security" not in document(FakeHost())
    assert document(FakeHost())["paths"]["/hooks/paid"]["post"]["security"] == []


async def test_it_is_served_with_the_address_it_is_served_at(client: AsyncClient) -> None:
    told = (await client.get("/openapi.json")).json()
    assert (told["openapi"], told["servers"]) == ("3.1.0", [{"url": "/"}])


# --- answers keep to it -------------------------------------------------------------------------------


def schema_of(made: dict[str, Any], path: str, method: str, status: str, kind: str) -> dict[str, Any]:
    """The schema of one answer, with the document's own definitions beside it."""
    answer = made["paths"][path][method]["responses"][status]
    if "$ref" in answer:
        answer = made["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    schema: dict[str, Any] = answer["content"][kind]["schema"]
    return {**schema, "components": made["components"]}


ASKED: list[tuple[str, str, str, dict[str, Any]]] = [
    ("post", "/tools/refund_order", "/tools/refund_order", {"json": {"order_id": "7", "amount": 1}}),
    ("post", "/tools/refund_order", "/tools/refund_order", {"json": {"order_id": "7", "amount": 900}}),
    ("post", "/tools/refund_order", "/tools/refund_order", {"content": b"{"}),
    ("post", "/hooks/paid", "/hooks/paid", {"json": {}}),
    ("get", "/runs", "/runs", {}),
    ("get", "/runs", "/runs?limit=x", {}),
    ("get", "/runs/{id}", "/runs/RUN", {}),
    ("get", "/runs/{id}", "/runs/none", {}),
    ("get", "/runs/{id}/journal", "/runs/RUN/journal", {}),
    ("post", "/runs/{id}/events/{event}", "/runs/RUN/events/E", {"json": {"a": 1}}),
    ("post", "/runs/{id}/approvals/{name}", "/runs/RUN/approvals/manager", {"json": {"approve": True}}),
    ("post", "/runs/{id}/cancel", "/runs/RUN/cancel", {}),
    ("post", "/runs/{id}/retry", "/runs/RUN/retry", {}),
    ("post", "/runs/{id}/fork", "/runs/RUN/fork", {"json": {"from": "pay"}}),
    ("post", "/runs/{id}/fork", "/runs/RUN/fork", {"json": {}}),
    ("get", "/tools/{name}/tables", "/tools/refund_order/tables", {}),
    ("get", "/tools/{name}/tables/{table}", "/tools/refund_order/tables/refunds", {}),
    ("get", "/tools/{name}/export", "/tools/refund_order/export?as=x", {}),
    ("post", "/modules/{module}/events", "/modules/counter/events", {"json": {"id": "e", "counter": "c"}}),
    ("get", "/modules/{module}", "/modules/counter", {}),
    ("get", "/modules/{module}/{key}", "/modules/counter/c", {}),
    ("get", "/modules/{module}/{key}/facts", "/modules/counter/c/facts", {}),
    ("post", "/modules/{module}/{key}/prune", "/modules/counter/c/prune", {}),
    ("post", "/sweep", "/sweep", {"json": {"runs": "30 days", "dry_run": True}}),
    ("post", "/sweep", "/sweep", {"json": {"runs": "soon"}}),
    ("get", "/parked", "/parked", {}),
    ("get", "/parked/{id}", "/parked/none", {}),
    ("get", "/healthz", "/healthz", {}),
    ("get", "/readyz", "/readyz", {}),
]


@pytest.mark.parametrize("waiting", [False, True])
async def test_answers_keep_to_the_document(host: FakeHost, client: AsyncClient, waiting: bool) -> None:
    made = document(host)
    if waiting:
        host.outcomes["refund_order"] = lambda _: waiting_for_manager()
    headers = {"idempotency-key": "first"}
    first = await client.post("/tools/refund_order", json={"order_id": "1", "amount": 1}, headers=headers)
    run_id = first.json()["run_id"]
    host.journals[run_id] = [JournalRow(1, "", "s", "step", 1, moment(NOW), result=[1])]
    host.approvals[run_id, "manager"] = OpenApproval(run_id, "refund_order", "manager", "?", moment(NOW), None, {})
    host.parked["p"] = ParkedItem("p", "owed", "refund_order", "502", moment(NOW))
    for method, path, url, sent in ASKED:
        told = await client.request(method, url.replace("RUN", run_id), **sent)
        kind = told.headers["content-type"].partition(";")[0]
        schema = schema_of(made, path, method, str(told.status_code), kind)
        faults = [fault.message for fault in Draft202012Validator(schema).iter_errors(told.json())]
        assert faults == [], (method, url)
