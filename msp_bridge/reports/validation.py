"""Validation: whether a value is a report in the standard format, by its published schema.

The schema is that of the npm package `mutation-testing-report-schema` 3.8.4 (Apache-2.0), unchanged.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import fastjsonschema

SCHEMA = "mutation-testing-report-schema.json"


def invalid(values: list[Any]) -> list[str | None]:
    """Of each value: what is wrong with it, or None."""
    validate = fastjsonschema.compile(json.loads(files(__package__).joinpath(SCHEMA).read_bytes()), use_default=False)
    return [_wrong(validate, value) for value in values]


def _wrong(validate: Any, value: Any) -> str | None:
    try:
        validate(value)
    except fastjsonschema.JsonSchemaValueException as error:
        return str(error.message).replace("data", "the report", 1).replace("the report.", "", 1)
    return None
