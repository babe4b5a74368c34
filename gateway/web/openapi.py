"""`/v1/openapi.json`: the API as its own types have it. docs/protocol.md says what it means."""

from typing import Annotated, Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from gateway import __version__, model
from gateway.kinds import Kinds
from gateway.states import State
from gateway.web import (
    alarms,
    asked,
    idempotency,
    jobs,
    problem,
    registering,
    reports,
    shapes,
)  # fmt: skip

_REF = "#/components/schemas/{name}"
_JSON = "application/json"
_MOST = 2**63 - 1
_PARTS = (model.Reading, model.Health, model.Lost)
_ANSWERS = (
    shapes.Stored, shapes.ReadingPage, shapes.Job, shapes.JobPage, shapes.DevicePage, shapes.Status,
    shapes.Problem, shapes.DeviceKey, shapes.Revoked, shapes.FullAlarm, shapes.AlarmPage,
)  # fmt: skip

# What any request may be answered with, and who has to mend it.
_FAILURES = {
    400: "it can not be read as it is",
    401: "whoever asks is not known",
    403: "whoever asks may not",
    429: "whoever asks does so too often; Retry-After says when",
    503: "not just now; Retry-After says when",
}
_OF_BODIES = {
    408: "the body did not arrive in time",
    413: "the body is too large",
    415: "the body comes in a form that is not taken",
    422: "what it says is not what it should be; the detail names it",
}
_NOT_FOUND = {404: "there is no such job"}
_NO_ALARM = {404: "there is no such alarm"}
_NO_DEVICE = {404: "there is no such device, or it has no key"}


def resource(kinds: Kinds) -> Handler:
    body = msgspec.json.encode(document(kinds))

    async def get(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=_JSON)

    return get


def document(kinds: Kinds) -> dict[str, Any]:
    """Return the description (OpenAPI 3.1) with the args of each of these kinds of jobs."""
    of_args = [kind.args for kind in kinds.values()]
    found, schemas = msgspec.json.schema_components(
        [
            _delivery(),
            *_PARTS,
            *_ANSWERS,
            asked.Ask,
            registering.Registration,
            alarms.Acknowledgement,
            *of_args,
        ],
        ref_template=_REF,
    )
    for part in _PARTS:  # what is not known in them is ignored, and never refused
        schemas[part.__name__].pop("additionalProperties")
    args = dict(zip(kinds, found[-len(of_args) :] if of_args else [], strict=True))
    described: dict[str, Any] = _in_javascript(
        {
            "openapi": "3.1.0",
            "info": {"title": "Fieldpost", "version": __version__},
            "paths": _paths(_job_asked_for(schemas, args)),
            "components": {
                "schemas": schemas,
                "securitySchemes": {
                    "operator": {"type": "http", "scheme": "bearer"},
                    "device": {"type": "apiKey", "in": "header", "name": "Authorization"},
                },
            },
            "security": [{"operator": []}],
        }
    )
    return described


def _delivery() -> type[msgspec.Struct]:
    """Return what is decoded as an Envelope, with the types of what is decoded one by one in it."""
    one_by_one = {
        "readings": Annotated[list[model.Reading], msgspec.Meta(max_length=model.MAX_READINGS)],
        "health": model.Health | None,
        "lost": list[model.Lost] | None,
    }
    fields: list[Any] = []
    for field in msgspec.structs.fields(model.Envelope):
        typed = (field.name, one_by_one.get(field.name, field.type))
        fields.append(typed if field.required else (*typed, None))
    return msgspec.defstruct("Delivery", fields)


def _job_asked_for(schemas: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a job of any of the kinds, each with its own args."""
    if not args:
        return _ref("Ask")
    ask = schemas.pop("Ask")
    return {"oneOf": [_of_kind(ask, name, args[name], schemas) for name in args]}


def _of_kind(
    ask: dict[str, Any], name: str, args: dict[str, Any], schemas: dict[str, Any]
) -> dict[str, Any]:
    takes = schemas[args["$ref"].removeprefix(_REF.format(name=""))]
    required = ["kind", "args"] if takes.get("required") else ["kind"]
    properties = ask["properties"] | {"kind": {"const": name}, "args": args}
    return ask | {"title": name, "properties": properties, "required": required}


def _paths(job: dict[str, Any]) -> dict[str, Any]:
    number, limit = _integer(0, _MOST), _query("limit", _integer(1, jobs.MOST_AT_ONCE))
    device = {"type": "string", "pattern": r"^[A-Za-z0-9_.-]{1,64}$"}
    sensor = {"type": "string", "pattern": r"^[^\x00-\x1f\x7f]{1,64}$"}
    state = {"type": "string", "enum": [str(state) for state in State]}
    wait = _query("wait", _integer(0, jobs.MOST_WAIT_S))
    job_id = _parameter("id", "path", _integer(1, 10**jobs.MOST_DIGITS - 1), required=True)
    named = _parameter("device", "path", device, required=True)
    of_readings = [
        _query("device", device), _query("sensor", sensor), _query("from", number),
        _query("to", number), _query("after", number), limit,
    ]  # fmt: skip
    of_asking = [
        _parameter("Prefer", "header", {"type": "string", "examples": ["wait=10"]}),
        _parameter("Idempotency-Key", "header", _key()),
    ]  # fmt: skip
    deliver = _operation("deliver readings", {200: "Stored"}, body=_ref("Delivery"))
    deliver["security"] = [{"operator": []}, {"device": []}]
    return {
        "/v1/readings": {
            "post": deliver,
            "get": _operation("list readings", {200: "ReadingPage"}, of_readings),
        },
        "/v1/jobs": {
            "post": _operation("ask for a job", {202: "Job", 200: "Job"}, of_asking, job),
            "get": _operation(
                "list jobs",
                {200: "JobPage"},
                [_query("state", state), _query("after", _integer(1, _MOST)), limit],
            ),
        },
        "/v1/jobs/{id}": {
            "get": _operation("look at a job", {200: "Job"}, [job_id, wait], more=_NOT_FOUND)
        },
        **{f"/v1/jobs/{{id}}/{verb}": {"post": _decision(verb, job_id)} for verb in _DECISIONS},
        "/v1/devices": {
            "get": _operation(
                "list devices", {200: "DevicePage"}, [_query("after", device), limit]
            ),
            "post": _operation("register", {200: "DeviceKey"}, body=_ref("Registration")),
        },
        "/v1/devices/{device}/rotate": {
            "post": _operation("make a new key", {200: "DeviceKey"}, [named], more=_NO_DEVICE)
        },
        "/v1/devices/{device}/revoke": {
            "post": _operation("make the keys void", {200: "Revoked"}, [named], more=_NO_DEVICE)
        },
        "/v1/alarms": {
            "get": _operation(
                "list alarms",
                {200: "AlarmPage"},
                [
                    _query("state", {"type": "string", "enum": list(alarms.STATES)}),
                    _query("after", _integer(1, _MOST)),
                    limit,
                ],
            ),
        },
        "/v1/alarms/{id}/acknowledge": {
            "post": _operation(
                "say that you know of an alarm",
                {200: "FullAlarm"},
                [job_id],
                _ref("Acknowledgement"),
                more=_NO_ALARM | {409: "it is closed"},
            )
        },
        "/v1/alarms/{id}/close": {
            "post": _operation(
                "close an alarm of an event",
                {200: "FullAlarm"},
                [job_id],
                more=_NO_ALARM | {409: "it is closed, or closes by itself when it is over"},
            )
        },
        "/v1/status": {"get": _operation("say what is true now", {200: "Status"})},
        **_of_files(job_id),
    }


def _of_files(job_id: dict[str, Any]) -> dict[str, Any]:
    name = {"type": "string", "pattern": rf"^{reports.NAME.pattern}$"}
    key, text = _parameter("Idempotency-Key", "header", _key()), {"type": "string"}
    unfit = {409: "the database is in memory and has no place for files"}
    bring_in = _operation("bring in a file of readings", {202: "Job"}, [key], text, unfit)
    bring_in["requestBody"]["content"] = {"text/csv": {"schema": text}}
    lines = _operation("list the bad lines of an import", {}, [job_id], more=_NOT_FOUND)
    lines["responses"]["200"] = _content("the bad lines", text, "text/plain")
    no_report = {404: "there is no report of that name"}
    named = _parameter("name", "path", name, required=True)
    report = _operation("get a report", {}, [named], more=no_report)
    report["responses"]["200"] = _content("a page", text, "text/html")
    report["responses"]["200"]["content"]["text/csv"] = {"schema": text}
    return {
        "/v1/imports": {"post": bring_in},
        "/v1/imports/{id}": {"get": lines},
        "/v1/reports/{name}": {"get": report},
    }


_DECISIONS = {
    "retry": "try a failed job again",
    "discard": "let a failed job be",
    "cancel": "do not do a job",
}


def _decision(verb: str, job_id: dict[str, Any]) -> dict[str, Any]:
    answers = {200: "Job"} | ({202: "Job"} if verb == "cancel" else {})
    more = _NOT_FOUND | {409: "its state has no such move; the detail says which it is in"}
    return _operation(_DECISIONS[verb], answers, [job_id], more=more)


def _operation(
    summary: str,
    answers: dict[int, str],
    parameters: list[dict[str, Any]] | None = None,
    body: dict[str, Any] | None = None,
    more: dict[int, str] | None = None,
) -> dict[str, Any]:
    failures = _FAILURES | (more or {}) | (_OF_BODIES if body else {})
    operation: dict[str, Any] = {
        "summary": summary,
        "parameters": parameters or [],
        "responses": {str(s): _content(name, _ref(name)) for s, name in answers.items()}
        | {str(s): _content(f, _ref("Problem"), problem.CONTENT_TYPE) for s, f in failures.items()},
    }
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": body}}}
    return operation


def _content(told: str, schema: dict[str, Any], form: str = _JSON) -> dict[str, Any]:
    return {"description": told, "content": {form: {"schema": schema}}}


def _query(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return _parameter(name, "query", schema)


def _parameter(
    name: str, where: str, schema: dict[str, Any], required: bool = False
) -> dict[str, Any]:
    return {"name": name, "in": where, "required": required, "schema": schema}


def _integer(least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


def _key() -> dict[str, Any]:
    form = r"""^("([ !#-\[\]-~]|\\["\\])+"|[!#$%&'*+.^_`|~0-9A-Za-z:/-]+)$"""
    return {"type": "string", "pattern": form, "maxLength": idempotency.MOST_CHARACTERS}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": _REF.format(name=name)}


def _in_javascript(found: Any) -> Any:
    """Return it with the patterns as JSON Schema has them, that is, as JavaScript does."""
    match found:
        case dict():
            return {
                key: value.replace(r"\A", "^").replace(r"\Z", "$")
                if key == "pattern" and isinstance(value, str)
                else _in_javascript(value)
                for key, value in found.items()
            }
        case list():
            return [_in_javascript(value) for value in found]
    return found
