"""The converter bends no type, names every fault with its path, and writes what the specification writes."""

import tracemalloc
from typing import Any

import attrs
import pytest

from msp_bridge import model
from msp_bridge.dialects import msp
from msp_bridge.dialects.converter import MAX_SHOWN, StrictConverter, Token, WrongShape, camel_case, reads
from msp_bridge.dialects.msp import to_discover, to_test, wire_files, wire_result
from msp_bridge.jsonrpc.messages import RpcError
from msp_bridge.rows import mutant_fields
from msp_bridge.workspace.selection import KnownMutant, Selection, Target

WIRE_LOCATION = {"start": {"line": 1, "column": 2}, "end": {"line": 3, "column": 4}}
LOCATION = model.Location(model.Position(1, 2), model.Position(3, 4))


@pytest.fixture(scope="module")
def converter() -> StrictConverter:
    return StrictConverter()


def faults(converter: StrictConverter, value: Any, wanted: type[Any]) -> list[str]:
    with pytest.raises(WrongShape) as caught:
        converter.structure(value, wanted)
    return caught.value.faults


@attrs.frozen
class Sample:
    whole: int = 0
    number: float = 0.0
    text: str = ""
    truth: bool = False
    maybe: str | None = None
    snake_case: int | None = None
    counts: dict[str, int] | None = None
    token: Token = attrs.field(default=Token(""))
    least: int = attrs.field(default=0, validator=attrs.validators.ge(0))


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("whole", "7", "must be a whole number, not '7'"),
        ("whole", 7.0, "must be a whole number, not 7.0"),
        ("whole", True, "must be a whole number, not true"),
        ("whole", None, "must be a whole number, not null"),
        ("whole", [7], "must be a whole number, not an array"),
        ("number", "7", "must be a number, not '7'"),
        ("number", False, "must be a number, not false"),
        ("number", None, "must be a number, not null"),
        ("text", 7, "must be a string, not 7"),
        ("text", None, "must be a string, not null"),
        ("text", {}, "must be a string, not an object"),
        ("text", ["a" * 100], "must be a string, not an array"),
        ("token", 1.5, "must be an integer or a string, not 1.5"),
        ("token", True, "must be an integer or a string, not true"),
        ("truth", 1, "must be true or false, not 1"),
        ("truth", "true", "must be true or false, not 'true'"),
        ("maybe", 7, "must be a string, not 7"),
        ("snakeCase", "x", "must be a whole number, not 'x'"),
        ("counts", [1], "must be an object, not an array"),
    ],
)
def test_no_type_is_bent(converter: StrictConverter, field: str, value: Any, reason: str) -> None:
    assert faults(converter, {field: value}, Sample) == [f"params.{field}: {reason}"]


def test_a_long_value_is_shown_short(converter: StrictConverter) -> None:
    whole = "x" * (MAX_SHOWN - 2)  # with its quotes it is as long as what is shown
    assert faults(converter, {"whole": whole}, Sample) == [f"params.whole: must be a whole number, not '{whole}'"]
    for longer in (f"{whole}x", "x" * 1_000_000):
        (fault,) = faults(converter, {"whole": longer}, Sample)
        assert fault == f"params.whole: must be a whole number, not '{whole[2:]}..."


def test_what_a_validator_refuses_is_a_fault_of_its_object(converter: StrictConverter) -> None:
    assert faults(converter, {"least": -1}, Sample) == ["params: 'least' must be >= 0: -1"]


def test_null_stands_for_an_absent_optional(converter: StrictConverter) -> None:
    assert converter.structure({"token": 5}, Sample) == Sample(token=Token(5))
    assert converter.structure({"maybe": None, "snakeCase": None}, Sample) == Sample()


def test_a_whole_number_is_a_number(converter: StrictConverter) -> None:
    assert converter.structure({"number": 7}, Sample).number == 7


def test_unknown_keys_are_left_to_later_versions_of_the_protocol(converter: StrictConverter) -> None:
    assert converter.structure({"whole": 1, "later": {}, "snake_case": "not ours"}, Sample) == Sample(whole=1)


RESULT = {"location": WIRE_LOCATION, "mutatorName": "m", "replacement": "", "static": False}
MUTANT = model.Mutant("a.py", "m", LOCATION, "")


@pytest.mark.parametrize(
    ("result", "wire"),
    [
        (
            model.Result(MUTANT, model.Status.SURVIVED, 0.0, (), static=False, tests_completed=0),
            {"status": "Survived", "coveredBy": [], "duration": 0.0, "testsCompleted": 0},
        ),
        (
            model.Result(MUTANT, model.Status.KILLED, 1.5, ("t1", "t2"), ("t2",), False, "assert 1 == 2", 2),
            {"status": "Killed", "coveredBy": ["t1", "t2"], "killedBy": ["t2"], "duration": 1.5, "testsCompleted": 2}
            | {"statusReason": "assert 1 == 2"},
        ),
    ],
    ids=["what is empty", "all"],
)
def test_a_result_has_all_that_the_tool_reported_and_nothing_that_is_none(
    result: model.Result, wire: dict[str, Any]
) -> None:
    assert wire_result(result) == {**RESULT, "id": MUTANT.id, **wire}


@pytest.mark.parametrize(
    ("snake", "camel"),
    [
        ("config_file_path", "configFilePath"),
        ("line", "line"),
        ("covered_by", "coveredBy"),
        (".mutator_name", ".mutatorName"),
    ],
)
def test_names_are_camel_case_on_the_wire(snake: str, camel: str) -> None:
    assert camel_case(snake) == camel


@pytest.mark.parametrize("value", [[], 5, "x", True, [{}]])
def test_params_must_be_an_object(converter: StrictConverter, value: Any) -> None:
    (fault,) = faults(converter, value, msp.DiscoverParams)
    assert fault.startswith("params: must be an object, not ")


def test_a_fault_is_named_with_its_path(converter: StrictConverter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msp_bridge.dialects.converter.MAX_FAULTS", 20)
    value = {
        "files": [{"path": "a.py"}, {"path": 1, "range": {"start": 5, "end": {"line": 0, "column": "3"}}}, {}, 7],
        "mutants": {"a.py": {"mutants": [{"id": 7, "location": {"start": {"line": 1}, "end": None}}]}, "b.py": 3},
    }
    assert sorted(faults(converter, value, msp.MutationTestParams)) == sorted(
        [
            "params.files[1].path: must be a string, not 1",
            "params.files[1].range.start: must be an object, not 5",
            "params.files[1].range.end.line: must be a whole number from 1 on, not 0",
            "params.files[1].range.end.column: must be a whole number from 1 on, not '3'",
            "params.files[2].path: path is missing",
            "params.files[3]: must be an object, not 7",
            "params.mutants['a.py'].mutants[0].id: must be a string, not 7",
            "params.mutants['a.py'].mutants[0].location.start.column: column is missing",
            "params.mutants['a.py'].mutants[0].location.end: must be an object, not null",
            "params.mutants['a.py'].mutants[0].mutatorName: mutatorName is missing",
            "params.mutants['b.py']: must be an object, not 3",
        ]
    )


MANY = 50_000
TOO_MANY = {
    "objects": {"files": [{} for _ in range(MANY)]},
    "numbers": {"files": [0] * MANY},
    "mutants": {"mutants": {"a.py": {"mutants": [{"id": 1, "location": {"start": {}}} for _ in range(MANY)]}}},
    "files": {"mutants": {f"{number}.py": [] for number in range(MANY)}},
}


@pytest.mark.parametrize("value", TOO_MANY.values(), ids=TOO_MANY)
def test_of_many_faults_the_first_five_are_named_in_little_memory(converter: StrictConverter, value: Any) -> None:
    faults(converter, value, msp.MutationTestParams)  # what is made once
    tracemalloc.start()
    try:
        named = faults(converter, value, msp.MutationTestParams)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(named) == 5
    assert len("; ".join(named)) < 1000
    assert peak < MANY, "less than a byte for each"


def test_a_key_in_a_path_is_shown_short(converter: StrictConverter) -> None:
    (fault,) = faults(converter, {"mutants": {"x" * 100_000: 3}}, msp.MutationTestParams)
    assert len(fault) < 100


@pytest.mark.parametrize(
    "path", ["src/my.some_file.py", "it's.a_b", 'say "x".a_b', "a @ b", "x'].a_b", "\\'.a_b", "\n.a_b"]
)
def test_a_file_name_in_a_path_stays_as_it_is(converter: StrictConverter, path: str) -> None:
    assert faults(converter, {"mutants": {path: {"mutants": 3}}}, msp.MutationTestParams) == [
        f"params.mutants[{path!r}].mutants: must be an array, not 3"
    ]


@pytest.mark.parametrize("number", [0, -1, 1.0, 1.5, "1", True, None])
def test_positions_are_one_based_whole_numbers(converter: StrictConverter, number: Any) -> None:
    (fault,) = faults(converter, {"line": number, "column": 1}, model.Position)
    assert "must be a whole number from 1 on" in fault


def test_the_error_answer_has_every_fault_in_its_message_and_in_its_data() -> None:
    with pytest.raises(RpcError) as caught:
        reads(Sample)({"whole": "5", "text": 5})
    named = ["params.whole: must be a whole number, not '5'", "params.text: must be a string, not 5"]
    assert (caught.value.code, caught.value.message, caught.value.data) == (-32602, "; ".join(named), {"faults": named})


@pytest.mark.parametrize("params", [None, {}, {"configFilePath": None}])
def test_params_may_be_left_out(params: Any) -> None:
    assert reads(msp.ConfigureParams)(params).config_file_path is None


@pytest.mark.parametrize("params", [None, {}, {"files": None}, {"files": None, "mutants": None}])
def test_no_selection_selects_everything(params: Any) -> None:
    assert to_test(params) == Selection()


def test_an_empty_list_selects_nothing() -> None:
    assert to_test({"files": []}).empty
    assert to_test({"mutants": {}}).empty
    assert to_test({"mutants": {"a.py": {"mutants": []}}}).empty
    assert to_discover({"files": []}).empty


def test_mutants_win_over_files() -> None:
    known = {"id": "1", "location": WIRE_LOCATION, "mutatorName": "m", "replacement": "r"}
    selection = to_test({"files": [{"path": "b.py"}], "mutants": {"a.py": {"mutants": [known]}}})
    assert selection == Selection(mutants=(KnownMutant("a.py", LOCATION, "m", "r"),))
    assert to_test({"files": [{"path": "b.py"}], "mutants": {}}).empty
    assert to_test({"files": [{"path": "b.py"}], "mutants": None}) == Selection(targets=(Target("b.py"),))


def test_files_and_ranges_become_targets() -> None:
    selection = to_discover({"files": [{"path": "a.py", "range": WIRE_LOCATION}, {"path": "src/"}]})
    assert selection == Selection(targets=(Target("a.py", LOCATION), Target("src/")))


def test_a_discovered_mutant_is_read_back_as_the_same() -> None:
    mutant = model.Mutant("a.py", "m", LOCATION, "", description="d")
    wire = mutant_fields(mutant)
    assert wire == {
        "id": mutant.id,
        "location": WIRE_LOCATION,
        "mutatorName": "m",
        "replacement": "",
        "description": "d",
    }
    selection = to_test({"mutants": wire_files([("a.py", wire)])["files"]})
    assert selection.takes(mutant)


def test_mutants_are_grouped_by_file_and_empty_named_files_are_there() -> None:
    assert wire_files([("a.py", 1), ("b.py", 2), ("a.py", 3)], ["a.py", "c.py"]) == {
        "files": {"a.py": {"mutants": [1, 3]}, "c.py": {"mutants": []}, "b.py": {"mutants": [2]}}
    }
