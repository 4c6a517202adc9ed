"""A mutant, and a result, as plain values; and back: as rows for files and messages of our own, and by named fields.

The fields are those of the mutation-testing-report-schema, which MSP has taken over. A row that comes back is checked,
since a file may be damaged and another process wrong: each value has its type, and a number is one that can be. Raises
ValueError for what no function here has made.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msp_bridge.model import Location, Mutant, Position, Result, Status


def mutant_row(mutant: Mutant) -> list[Any]:
    """The identity of the mutant: without description and handle."""
    start, end = mutant.location.start, mutant.location.end
    return [mutant.path, mutant.mutator, start.line, start.column, end.line, end.column, mutant.replacement]


def mutant_of(row: Any) -> Mutant:
    """The mutant with this identity. Raises ValueError."""
    match row:
        case [str(path), str(mutator), *place, str(replacement)] if len(place) == 4 and all(map(_is_ordinal, place)):
            start, end = Position(*place[:2]), Position(*place[2:])
            if start <= end:
                return Mutant(path, mutator, Location(start, end), replacement)
    raise ValueError("a row is no mutant's")


def result_row(result: Result) -> list[Any]:
    """The row of a result, without its mutant."""
    return [result.status.value, *(getattr(result, name) for name in FIELDS)]


def result_fields(row: Any) -> dict[str, Any]:
    """The fields of the `Result`, all but the mutant. Raises ValueError."""
    if not isinstance(row, list | tuple) or len(row) != 1 + len(FIELDS):
        raise ValueError("a row is no result's")
    values = {name: read(value) for (name, read), value in zip(FIELDS.items(), row[1:], strict=True)}
    return {"status": Status(row[0]), **values}


def location_fields(location: Location) -> dict[str, Any]:
    """The fields of a location."""
    start, end = location.start, location.end
    return {"start": {"line": start.line, "column": start.column}, "end": {"line": end.line, "column": end.column}}


def mutant_fields(mutant: Mutant) -> dict[str, Any]:
    """The fields of a mutant. Made by hand, as `outcome_fields`: a converter would take four times as long."""
    fields = {"id": mutant.id, "location": location_fields(mutant.location), "mutatorName": mutant.mutator}
    if mutant.description is not None:
        fields["description"] = mutant.description
    fields["replacement"] = mutant.replacement
    return fields


def outcome_fields(result: Result) -> dict[str, Any]:
    """The fields that a result adds to those of its mutant."""
    fields: dict[str, Any] = {"status": result.status.value}
    for name, value in (
        ("coveredBy", result.covered_by),
        ("duration", result.duration),
        ("killedBy", result.killed_by),
        ("static", result.static),
        ("statusReason", result.status_reason),
        ("testsCompleted", result.tests_completed),
    ):
        if value is not None:
            fields[name] = list(value) if isinstance(value, tuple) else value
    return fields


def reported_location(fields: Mapping[str, Any]) -> Location:
    """The location with these fields."""
    start, end = fields["start"], fields["end"]
    return Location(Position(start["line"], start["column"]), Position(end["line"], end["column"]))


def reported_mutant(path: str, fields: Mapping[str, Any]) -> Mutant:
    """The mutant with these fields in a valid report, without their id, which depends on who has numbered it."""
    place, replacement = reported_location(fields["location"]), fields.get("replacement", "")
    return Mutant(path, fields["mutatorName"], place, replacement, fields.get("description"))


def reported_result(mutant: Mutant, fields: Mapping[str, Any], tests: Mapping[str, str] | None = None) -> Result:
    """The result in a report of the mutation-testing-report-schema; `tests` has the names of ids.

    What is optional and has another type is left out. Raises KeyError without a status, ValueError for an unknown one.
    """
    names = tests or {}

    def named(key: str) -> tuple[str, ...] | None:
        ids = fields.get(key)
        return tuple(names.get(str(test), str(test)) for test in ids) if isinstance(ids, list) else None

    def number(key: str) -> Any:
        value = fields.get(key)
        return value if type(value) in (int, float) else None

    completed, static = number("testsCompleted"), fields.get("static")
    return Result(
        mutant,
        Status(fields["status"]),
        duration=number("duration"),
        covered_by=named("coveredBy"),
        killed_by=named("killedBy"),
        static=static if isinstance(static, bool) else None,
        status_reason=str(fields.get("statusReason") or "") or None,
        tests_completed=None if completed is None else int(completed),
    )


def names_of(value: Any) -> tuple[str, ...]:
    """The names in a list. Raises ValueError."""
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError("there is no list of names")
    return tuple(value)


def _is_ordinal(value: Any) -> bool:
    return type(value) is int and value > 0


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _number(*types: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) not in types or not 0 <= value < MOST:
            raise ValueError("there is no such number")
        return value

    return read


def _of_type(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise ValueError(f"there is no {kind.__name__}")
        return value

    return read


MOST = 1e15  # ms, and tests: more are none
FIELDS: Mapping[str, Callable[[Any], Any]] = {  # of Result, in the order of a row, and how each is read
    "duration": _optional(_number(int, float)),
    "covered_by": _optional(names_of),
    "killed_by": _optional(names_of),
    "static": _optional(_of_type(bool)),
    "status_reason": _optional(_of_type(str)),
    "tests_completed": _optional(_number(int)),
    "reusable": _of_type(bool),
}
