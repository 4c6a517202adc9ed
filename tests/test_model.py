"""The identity of mutants, which editors remember beyond the life of a server."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msp_bridge.adapter import Project
from msp_bridge.model import Location, Mutant, Position, Scope, Status


def location(line: int, column: int, end_line: int, end_column: int) -> Location:
    return Location(Position(line, column), Position(end_line, end_column))


HERE = location(1, 1, 1, 2)


@pytest.mark.parametrize(
    ("mutant", "id"),
    [
        (Mutant("a.py", "number", HERE, "2"), "5692366659928130"),
        (Mutant("src/pkg/módulo.py", "remove call", location(10, 5, 12, 1), "pass\n\tü😀"), "8513733196162922"),
        (Mutant("bad\udcff.py", "number", HERE, "\ud800"), "8164882609132557"),
        (Mutant("a.py", "number", HERE, ""), "5547342237387392"),
    ],
)
def test_ids_stay_as_they_are_from_version_to_version(mutant: Mutant, id: str) -> None:
    assert mutant.id == id


positions = st.builds(Position, st.integers(1, 10**6), st.integers(1, 10**4))
mutants = st.builds(Mutant, st.text(), st.text(), st.builds(Location, positions, positions), st.text())


@given(mutants)
def test_ids_are_decimal_digits_below_2_to_the_53(mutant: Mutant) -> None:
    assert mutant.id.isascii()
    assert mutant.id.isdigit()
    assert str(int(mutant.id)) == mutant.id
    assert int(mutant.id) < 2**53
    assert int(float(mutant.id)) == int(mutant.id)


@given(mutants, mutants)
def test_equal_mutants_have_equal_ids_and_different_ones_different_ids(one: Mutant, other: Mutant) -> None:
    assert (one == other) == (one.id == other.id)


def test_ids_of_a_big_project_do_not_collide() -> None:
    ids = {
        Mutant(f"{file}.py", name, location(line, 1, line, 2), "x").id
        for file in range(20)
        for name in "ab"
        for line in range(1, 2001)
    }
    assert len(ids) == 20 * 2 * 2000


def test_what_the_tool_calls_a_mutant_is_no_part_of_its_identity() -> None:
    one = Mutant("a.py", "number", HERE, "2", description="this", handle="x_1")
    other = Mutant("a.py", "number", HERE, "2", description="that", handle="x_2")
    assert one == other
    assert hash(one) == hash(other)
    assert one.id == other.id


def test_positions_are_ordered_by_line_then_column() -> None:
    assert sorted([Position(2, 1), Position(1, 9), Position(1, 10)]) == [
        Position(1, 9),
        Position(1, 10),
        Position(2, 1),
    ]


@pytest.mark.parametrize(
    ("inner", "contained"),
    [
        (location(2, 5, 4, 5), True),
        (location(2, 5, 2, 5), True),
        (location(3, 1, 3, 99), True),
        (location(2, 4, 3, 1), False),
        (location(3, 1, 4, 6), False),
        (location(1, 9, 5, 1), False),
    ],
)
def test_a_location_contains_what_lies_wholly_within_it(inner: Location, contained: bool) -> None:
    assert location(2, 5, 4, 5).contains(inner) is contained


def test_detected_and_undetected_are_what_the_score_counts() -> None:
    assert {status for status in Status if status.detected} == {Status.KILLED, Status.TIMEOUT}
    assert {status for status in Status if status.undetected} == {Status.SURVIVED, Status.NO_COVERAGE}


@pytest.mark.parametrize(
    ("paths", "path", "covered"),
    [
        (None, "a.py", True),
        ([], "a.py", False),
        (["a.py"], "a.py", True),
        (["a.py"], "b.py", False),
        (["a.py"], "a.pyi", False),
        (["src/"], "src/a.py", True),
        (["src/"], "src/deep/er/a.py", True),
        (["src/"], "src", False),
        (["src/"], "srca.py", False),
        (["src/deep/"], "src/a.py", False),
        (["src"], "src/a.py", False),
        (["/"], "a.py", True),
        (["/"], "src/a.py", True),
    ],
)
def test_a_scope_covers_its_files_and_what_lies_below_its_directories(
    paths: list[str] | None, path: str, covered: bool
) -> None:
    assert Scope(None if paths is None else frozenset(paths)).covers(path) is covered


def test_only_the_whole_project_is_everything() -> None:
    assert Scope().everything
    assert not Scope(frozenset()).everything


def test_the_directories_of_a_project_are_absolute_since_tools_run_elsewhere() -> None:
    project = Project(root=Path("a"), cache=Path("b"))
    assert (project.root, project.cache) == (Path.cwd() / "a", Path.cwd() / "b")
