"""Builds the OpenAPI document from the route table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from hermes.codec.values import JsonObject
from hermes.surfaces.api.routes import ApiRoute
from hermes.version import __version__

JSON_TYPE = "application/json"
EVENTS_TYPE = "text/event-stream"
REF = "#/components/schemas/{name}"
ERROR: JsonObject = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": "string"},
            },
        }
    },
}
TEXT_PATHS = ("/metrics",)


def document(routes: Sequence[ApiRoute]) -> JsonObject:
    bodies = [route.body for route in routes if route.body is not None]
    kinds = list(dict.fromkeys(bodies))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REF)
    by_kind = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_kind)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hermes", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: ApiRoute, schemas: dict[Any, JsonObject]) -> JsonObject:
    name = f"{route.handler.__name__}_{re.sub(r'[^a-z0-9]+', '_', route.path).strip('_')}"
    told: JsonObject = {
        "operationId": name,
        "summary": route.words,
        "security": [{"token": []}] if route.scope else [],
        "responses": {
            str(route.status): {"description": "Success.", "content": _content(route)},
            "default": {
                "description": "Error; the body gives the reason.",
                "content": {JSON_TYPE: {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    names = re.findall(r"\{(\w+)\}", route.path)
    if names:
        told["parameters"] = [
            {"name": each, "in": "path", "required": True, "schema": {"type": "string"}}
            for each in names
        ]
    if route.body is not None:
        told["requestBody"] = {
            "required": True,
            "content": {JSON_TYPE: {"schema": schemas[route.body]}},
        }
    return told


def _content(route: ApiRoute) -> JsonObject:
    if route.path in TEXT_PATHS:
        return {"text/plain": {"schema": {"type": "string"}}}
    told: JsonObject = {JSON_TYPE: {"schema": {"type": "object"}}}
    if route.streams:
        told[EVENTS_TYPE] = {"schema": {"type": "string"}}
    return told
