"""Selection: whatever way a client names files and mutants, exactly those are meant."""

from pathlib import Path

import pytest

from msp_bridge.model import Location, Mutant, Position, Scope
from msp_bridge.workspace.selection import KnownMutant, Selection, Target, relative_path


def location(line: int, column: int, end_line: int, end_column: int) -> Location:
    return Location(Position(line, column), Position(end_line, end_column))


HERE = location(3, 5, 3, 8)


def mutant(path: str = "src/a.py", where: Location = HERE, name: str = "m", replacement: str = "x") -> Mutant:
    return Mutant(path, name, where, replacement)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src" / "pkg").mkdir(parents=True)
    (root / "src" / "a.py").touch()
    (root / "src" / "pkg" / "b.py").touch()
    (tmp_path / "outside.py").touch()
    return root


@pytest.mark.parametrize(
    ("path", "relative"),
    [
        ("src/a.py", "src/a.py"),
        ("./src/a.py", "src/a.py"),
        ("src//a.py", "src/a.py"),
        ("src/pkg/../a.py", "src/a.py"),
        ("../project/src/a.py", "src/a.py"),
        ("src", "src/"),
        ("src/", "src/"),
        ("src/pkg/", "src/pkg/"),
        (".", "/"),
        ("./", "/"),
        ("", "/"),
        ("src/..", "/"),
        ("new.py", "new.py"),
        ("new/", "new/"),
        ("..", None),
        ("../", None),
        ("../outside.py", None),
        ("../project2/a.py", None),
        ("src/../../outside.py", None),
        ("/etc/passwd", None),
        ("/", None),
        ("..a.py", "..a.py"),
        ("...", "..."),
        ("a\0b.py", None),
        ("x" * 5000, "x" * 5000),
        ("/" + "x" * 5000, None),
        ("\ud800.py", None),
        ("\udcff.py", "\udcff.py"),
        ("/\ud800.py", None),
        ("../\udcff.py", None),
        ("ü 😀\n.py", "ü 😀\n.py"),
    ],
)
def test_a_path_is_relative_to_the_root_or_outside(root: Path, path: str, relative: str | None) -> None:
    assert relative_path(root, path) == relative


def test_a_symlinked_root_is_known_by_both_its_names(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    for base in (root, link):
        for named in (root, link):
            assert relative_path(base, str(named / "src" / "a.py")) == "src/a.py"
            assert relative_path(base, str(named / "new.py")) == "new.py"
            assert relative_path(base, str(named / "src")) == relative_path(base, f"{named}/src/") == "src/"
            assert relative_path(base, str(named)) == "/"


def test_a_link_within_the_root_keeps_its_own_name(root: Path) -> None:
    (root / "linked.py").symlink_to(root / "src" / "a.py")
    (root / "linked").symlink_to("src")
    (root / "loop.py").symlink_to("loop.py")
    assert relative_path(root, "linked.py") == "linked.py"
    assert relative_path(root, "linked") == "linked/"
    assert relative_path(root, "linked/pkg/b.py") == "linked/pkg/b.py"
    assert relative_path(root, "loop.py") == "loop.py"


def test_what_lies_outside_is_dropped_and_the_rest_stays(root: Path) -> None:
    targets = (Target(str(root / "src/a.py"), HERE), Target("/etc/passwd"), Target("src"))
    assert Selection(targets=targets).within(root) == Selection(targets=(Target("src/a.py", HERE), Target("src/")))
    known = (KnownMutant("../outside.py", HERE, "m", "x"), KnownMutant("./src/a.py", HERE, "m", "x"))
    assert Selection(mutants=known).within(root) == Selection(mutants=(KnownMutant("src/a.py", HERE, "m", "x"),))


def test_when_all_lies_outside_nothing_is_selected_rather_than_everything(root: Path) -> None:
    assert Selection(targets=(Target("/etc/passwd"),)).within(root).empty
    assert Selection(mutants=(KnownMutant("/etc/passwd", HERE, "m", "x"),)).within(root).empty


def test_no_targets_and_no_mutants_is_the_whole_project(root: Path) -> None:
    selection = Selection().within(root)
    assert not selection.empty
    assert selection.scope.everything
    assert selection.takes(mutant())


def test_empty_tuples_select_nothing() -> None:
    assert Selection(targets=()).empty
    assert Selection(mutants=()).empty
    assert Selection(targets=(Target("a.py"),), mutants=()).empty


@pytest.mark.parametrize(
    ("range", "taken"),
    [
        (location(3, 5, 3, 8), True),
        (location(1, 1, 99, 1), True),
        (location(3, 5, 4, 1), True),
        (location(3, 6, 3, 8), False),
        (location(3, 5, 3, 7), False),
        (location(1, 1, 3, 5), False),
        (location(3, 8, 9, 1), False),
    ],
)
def test_a_range_takes_exactly_the_mutants_wholly_within_it(range: Location, taken: bool) -> None:
    assert Selection(targets=(Target("src/a.py", range),)).takes(mutant()) is taken


def test_a_range_of_one_file_selects_nothing_of_another() -> None:
    selection = Selection(targets=(Target("src/a.py", location(1, 1, 99, 1)),))
    assert not selection.takes(mutant("src/b.py"))
    assert selection.scope == Scope(frozenset({"src/a.py"}))


def test_several_ranges_and_files_add_up() -> None:
    selection = Selection(
        targets=(Target("a.py", location(1, 1, 2, 1)), Target("a.py", location(3, 1, 4, 1)), Target("src/"))
    )
    assert selection.takes(mutant("a.py"))
    assert selection.takes(mutant("src/deep/c.py"))
    assert not selection.takes(mutant("a.py", location(2, 1, 2, 2)))
    assert not selection.takes(mutant("b.py"))


def test_a_whole_file_wins_over_its_ranges() -> None:
    selection = Selection(targets=(Target("a.py", location(1, 1, 2, 1)), Target("a.py")))
    assert selection.takes(mutant("a.py"))


@pytest.mark.parametrize(
    ("known", "taken"),
    [
        (KnownMutant("src/a.py", HERE, "m", "x"), True),
        (KnownMutant("src/a.py", HERE, "m", None), True),
        (KnownMutant("src/a.py", HERE, "m", "y"), False),
        (KnownMutant("src/a.py", HERE, "m", ""), False),
        (KnownMutant("src/a.py", HERE, "n", "x"), False),
        (KnownMutant("src/b.py", HERE, "m", "x"), False),
        (KnownMutant("src/a.py", location(3, 5, 3, 9), "m", "x"), False),
        (KnownMutant("src/a.py", location(2, 5, 3, 8), "m", "x"), False),
    ],
)
def test_a_known_mutant_is_found_by_path_location_mutator_and_replacement(known: KnownMutant, taken: bool) -> None:
    selection = Selection(mutants=(known,))
    assert selection.takes(mutant()) is taken
    assert selection.scope == Scope(frozenset({known.path}))


def test_known_mutants_at_one_place_are_distinguished() -> None:
    selection = Selection(mutants=(KnownMutant("src/a.py", HERE, "m", "x"), KnownMutant("src/a.py", HERE, "n", "y")))
    assert [
        selection.takes(mutant(name=name, replacement=text))
        for name, text in [("m", "x"), ("m", "y"), ("n", "x"), ("n", "y")]
    ] == [
        True,
        False,
        False,
        True,
    ]


def test_only_whole_files_are_named_files(root: Path) -> None:
    targets = (Target("src/a.py"), Target("src/pkg/b.py", HERE), Target("src"), Target("new.py"), Target("/etc/passwd"))
    assert Selection(targets=targets).within(root).named_files == ["src/a.py", "new.py"]
    assert Selection().named_files == []


@pytest.mark.parametrize(
    ("glob", "target", "taken"),
    [
        ("src/a.py", Target("src/a.py"), ["src/a.py"]),
        ("src/*.py", Target("src/", glob="*.py"), ["src/a.py", "src/b.py", "src/long.py"]),
        ("src/**/?.py", Target("src/", glob="**/?.py"), ["src/a.py", "src/b.py", "src/pkg/c.py"]),
        ("src/pkg/{c,d}.py", Target("src/pkg/", glob="{c,d}.py"), ["src/pkg/c.py"]),
        ("s*/[ab].py", Target("", glob="s*/[ab].py"), ["src/a.py", "src/b.py"]),
        ("**/c.py", Target("", glob="**/c.py"), ["src/pkg/c.py", "c.py"]),
    ],
)
def test_a_pattern_takes_what_it_matches_below_its_directory(glob: str, target: Target, taken: list[str]) -> None:
    assert Target.matching(glob) == target
    selection = Selection(targets=(target,))
    paths = ["src/a.py", "src/b.py", "src/pkg/c.py", "src/long.py", "c.py"]
    assert [path for path in paths if selection.takes(mutant(path))] == taken
    assert [path for path in paths if selection.takes_some_of(path)] == taken


def test_a_pattern_that_stands_for_too_many_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^'\{1\.\.9999\}': "):
        Target.matching("src/{1..9999}")


def test_a_part_takes_what_has_some_text_in_it() -> None:
    inside, apart = location(3, 6, 3, 7), location(4, 1, 4, 2)
    for range, taken in ((inside, True), (apart, False)):
        assert Selection(targets=(Target("src/a.py", range, partly=True),)).takes(mutant()) is taken
        assert not Selection(targets=(Target("src/a.py", range),)).takes(mutant())


def test_mutants_may_be_taken_of_what_is_selected_in_whole_or_in_part() -> None:
    targets = Selection(targets=(Target("a.py", HERE), Target("src/"), Target("b.py"), Target("c/", glob="*")))
    assert [path for path in ("a.py", "src/x.py", "b.py", "d.py") if targets.takes_some_of(path)] == [
        "a.py",
        "src/x.py",
        "b.py",
    ]
    assert targets.named_files == ["b.py"]
    whole = tuple(
        Target(path, glob=glob) for path, glob in (("a.py", None), ("src/", None), ("b.py", None), ("c/", "*"))
    )
    assert targets.of_whole_files == Selection(targets=whole)
    for selection in (Selection(), Selection(mutants=())):
        assert selection.takes_some_of("d.py")
        assert selection.of_whole_files is selection
        assert selection.named_files == []


TARGETS = tuple(Target(f"{number}.py") for number in range(5))
KNOWN = tuple(KnownMutant(f"{number}.py", HERE, "m", "x") for number in range(5))


@pytest.mark.parametrize("selection", [Selection(targets=TARGETS), Selection(mutants=KNOWN)])
def test_parts_of_a_selection_are_the_selection_together(root: Path, selection: Selection) -> None:
    within = selection.within(root)
    parts = list(within.split(2))
    assert [part.size for part in parts] == [2, 2, 1]
    assert [part.within(root) is part for part in parts] == [True] * 3
    assert Selection.joined(parts) == within
    assert [(part.targets is None, part.mutants is None) for part in parts] == [
        (within.targets is None, within.mutants is None)
    ] * 3


def test_a_known_mutant_is_a_mutant_if_its_replacement_is_known() -> None:
    assert KnownMutant.of(mutant()).mutant == mutant()
    assert KnownMutant("src/a.py", HERE, "m", None).mutant is None
