"""serve.openapi - the document of all routes that programs call, as OpenAPI 3.1.

For: one operation an actuator, named after it, with its own schemas; the common routes; how to sign,
repeat, wait.
Never: describes pages for people; a route that the table does not have (a test compares the two).
Was wrong once: written by hand beside the routes. It promised a parameter for a year that no code read.
"""

from __future__ import annotations

from typing import Any, Final

from onefold.actuators.schema import output_schema
from onefold.serve import (
    openapi_cells,
    openapi_deployed,
    openapi_fleet,
    openapi_paths,
    openapi_reflexes,
    openapi_tables,
)
from onefold.serve import openapi_parts as parts
from onefold.serve.door import Actuator, Host
from onefold.serve.routes import Answer, Ask, answer
from onefold.serve.version import version

_DEFS: Final = "#/$defs/"


class Document:
    """The document over one host. Made once for each set of tools: a deployed file brings others."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._made: dict[str, Any] | None = None
        self._generation = 0

    async def show(self, ask: Ask) -> Answer:
        generation = self._host.catalog.generation
        if self._made is None or self._generation != generation:
            self._made, self._generation = document(self._host), generation
        return answer({**self._made, "servers": [{"url": ask.base or "/"}]})


def document(host: Host) -> dict[str, Any]:
    """The whole document, without the address it is served at."""
    keyed = bool(host.config.keys)
    paths: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for actuator in host.catalog.actuators.values():
        paths[f"/tools/{actuator.name}"] = {"post": _call(actuator)}
        if actuator.webhook:
            paths[f"/hooks/{actuator.name}"] = {"post": _hook(actuator)}
        definitions |= _definitions(actuator)
    paths |= (
        openapi_paths.common()
        | openapi_tables.tables()
        | openapi_reflexes.paths()
        | openapi_cells.paths()
        | openapi_fleet.paths()
        | openapi_deployed.paths()
    )
    made: dict[str, Any] = {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {"title": host.catalog.title, "version": version(), "summary": "Durable tools, runs and actors."},
        "paths": paths,
        "components": {
            "schemas": {"Receipt": output_schema({}), **parts.SCHEMAS, **openapi_reflexes.SCHEMAS, **definitions},
            "parameters": parts.PARAMETERS,
            "headers": parts.HEADERS,
            "responses": parts.RESPONSES,
        },
        "tags": [
            {"name": "tools", "description": "Each a durable function."},
            {"name": "runs", "description": "What became of a call."},
            {"name": "modules", "description": "Actors: one event in, one reply out."},
            {"name": "cells", "description": "Named typed state that takes turns."},
            {"name": "reflexes", "description": "Automations as data: facts in, runs and tasks of them."},
            {"name": "operation", "description": "For those who keep it running."},
        ],
        "x-onefold-modules": {name: module.room for name, module in host.catalog.modules.items()},
    }
    if keyed:
        made["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"key": []}]
    return made


def _receipt(actuator: Actuator, description: str, *names: str) -> dict[str, Any]:
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    schema = _pointed(actuator.output_schema, actuator.name, "Output")
    return {"description": description, "headers": headers, "content": {parts.JSON: {"schema": schema}}}


def _definitions(actuator: Actuator) -> dict[str, Any]:
    """What an actuator's schemas define by name (types that contain themselves), named after it."""
    found: dict[str, Any] = {}
    for part, schema in (("Input", actuator.input_schema), ("Output", actuator.output_schema)):
        for name, definition in schema.get("$defs", {}).items():
            found[f"{actuator.name}.{part}.{name}"] = _pointed(definition, actuator.name, part)
    return found


def _pointed(schema: Any, actuator: str, part: str) -> Any:
    """A schema whose references lead into this document: `#/$defs/X` means another place here."""
    if isinstance(schema, list):
        return [_pointed(one, actuator, part) for one in schema]
    if not isinstance(schema, dict):
        return schema
    told = {key: _pointed(value, actuator, part) for key, value in schema.items() if key != "$defs"}
    target = schema.get("$ref")
    if isinstance(target, str) and target.startswith(_DEFS):
        told["$ref"] = f"#/components/schemas/{actuator}.{part}.{target.removeprefix(_DEFS)}"
    return told


def _call(actuator: Actuator) -> dict[str, Any]:
    """POST /tools/{name}: the operation's name is the actuator's."""
    return {
        "operationId": actuator.name,
        "summary": actuator.description.partition("\n")[0] or actuator.name,
        "description": actuator.description,
        "tags": ["tools"],
        "parameters": [
            {"$ref": "#/components/parameters/IdempotencyKey"},
            {"$ref": "#/components/parameters/Prefer"},
            {"$ref": "#/components/parameters/Callback"},
        ],
        "requestBody": {
            "required": True,
            "content": {parts.JSON: {"schema": _pointed(actuator.input_schema, actuator.name, "Input")}},
        },
        "responses": {
            "200": _receipt(actuator, "Done: the receipt, with the result.", "Onefold-Replayed"),
            "202": _receipt(
                actuator,
                "Accepted and not ended: ask Location for more.",
                "Location",
                "Retry-After",
                "Onefold-Replayed",
            ),
            "409": {"$ref": "#/components/responses/Conflict"},
            "500": {"$ref": "#/components/responses/Failed"},
            **parts.refusals("400", "401", "403", "404", "413", "422", "429", "503"),
        },
    }


def _hook(actuator: Actuator) -> dict[str, Any]:
    """POST /hooks/{name}: the signature is the key, so no other is asked for."""
    return {
        "operationId": f"{actuator.name}_hook",
        "summary": f"A delivery signed the {actuator.webhook} way; its own id is the key.",
        "tags": ["tools"],
        "security": [],
        "requestBody": {"required": True, "content": {parts.JSON: {"schema": {}}}},
        "responses": {
            "202": _receipt(actuator, "Taken: the receipt, the first time or again.", "Onefold-Replayed"),
            **parts.refusals("400", "401", "404", "413", "422", "429", "503"),
        },
    }
