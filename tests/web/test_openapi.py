"""`/v1/openapi.json` is true: what it says can be sent is taken, what comes back is as it says."""

import asyncio
import json
import re
import threading
from collections.abc import Coroutine, Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from gateway import handlers
from gateway.config import Config
from gateway.web import openapi
from tests.services import job_kinds
from tests.web.house import House, batch, body, start

KINDS = handlers.registry(Config().for_jobs())
EXAMPLES = 50
WEBHOOK = {"kind": "send_webhook", "args": {"url": "http://127.0.0.1:1/", "payload": {}}}
# Itself, and a stream that does not end.
ELSEWHERE = ("/v1/openapi.json", "/v1/events")

# Who asks is the operator each time; tests/web/test_access.py has the rest.
config = schemathesis.Config.from_dict({"generation": {"with-security-parameters": False}})
schema = schemathesis.openapi.from_dict(
    json.loads(json.dumps(openapi.document(KINDS))), config=config
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A gateway in a thread of its own, with something of everything in it; nobody waits there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(30)

    house, stop = run(start(tmp_path_factory.mktemp("house"), registry=handlers.REGISTRY))
    run(_fill(house))
    yield house
    run(stop())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def _fill(house: House) -> None:
    house.stopping.set()
    await house.register("esp32-1")
    await house.signed("esp32-1", body(batch(count=3, first=2)))
    for _ in range(3):
        await house.ask_for(WEBHOOK)
    await house.decide(1, "cancel")


def not_promised(case: schemathesis.Case, told: str) -> list[Any]:
    """Return the checks of what we promise otherwise."""
    excluded: list[Any] = []
    if (case.method, case.path) == ("POST", "/v1/readings"):
        excluded.append(negative_data_rejection)  # what is optional and malformed is ignored
    # A kind knows more of its args than their types; 3.0 is an integer to JSON Schema, not to us.
    if re.search("Idempotency-Key was used before|args of |Expected `int.*got `float`", told):
        excluded.append(positive_data_acceptance)
    return excluded


# What takes a file of any text is for tests/web/test_imports.py.
@schema.exclude(path="/v1/imports").parametrize()
@hypothesis.settings(max_examples=EXAMPLES)
def test_every_answer_is_as_described(case: schemathesis.Case, running: House) -> None:
    token = f"Bearer {running.keys.operator_token}"
    response = case.call(
        base_url=f"http://127.0.0.1:{running.port}", headers={"Authorization": token}
    )
    case.validate_response(response, excluded_checks=not_promised(case, response.text))


def test_the_document_asks_for_the_args_of_each_kind_by_name() -> None:
    given = job_kinds.registry({"folder": ""})
    document = openapi.document(given)
    kinds = document["paths"]["/v1/jobs"]["post"]["requestBody"]["content"]["application/json"]
    asked = {kind["properties"]["kind"]["const"]: kind for kind in kinds["schema"]["oneOf"]}
    assert asked.keys() == given.keys()
    name = asked["act"]["properties"]["args"]["$ref"].rpartition("/")[2]
    assert document["components"]["schemas"][name]["properties"].keys() == {
        "do", "mark", "seconds", "pause_s"
    }  # fmt: skip


def test_a_gateway_without_kinds_is_described_too() -> None:
    assert "Ask" in openapi.document({})["components"]["schemas"]


def test_every_ref_of_the_document_leads_somewhere() -> None:
    document = openapi.document(KINDS)
    refs = set(re.findall(r"#/components/schemas/([^\"]+)", json.dumps(document)))
    assert refs
    assert refs <= document["components"]["schemas"].keys()


async def test_every_resource_of_the_api_is_described(house: House) -> None:
    answer = await house.operator("/v1/openapi.json")
    described = {
        (method.upper(), path)
        for path, operations in answer.json["paths"].items()
        for method in operations
    }
    there = {
        (route.method, route.resource.canonical)
        for route in house.app.router.routes()
        if route.method != "HEAD" and route.resource.canonical.startswith("/v1/")
    }
    assert described == {one for one in there if not one[1].startswith(ELSEWHERE)}
