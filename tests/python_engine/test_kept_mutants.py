"""Answers that are kept: the next bridge need not ask the tool again which mutants a file has."""

import sqlite3
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.adapters import discovered, results_of
from support.cosmic_ray_trees import adapter_on
from support.mutmut_trial import Trial
from support.projects import copied

from msp_bridge.adapter import Mutant, Status
from msp_bridge.python_engine import ListingProgram
from msp_bridge.toolkit.kept_answers import NAME

TABLE = '[tool.mutmut]\nsource_paths = ["pkg"]\n'
SOURCE = "def add(a, b):\n    return a + b\n\n\ndef grow(a):\n    return a * 2  # twice\n"
TEST = "from pkg.calc import add, grow\n\n\ndef test_it():\n    assert (add(2, 3), grow(5)) == (5, 10)\n"
FILES = {"pyproject.toml": TABLE, "pkg/__init__.py": "", "pkg/calc.py": SOURCE, "tests/test_calc.py": TEST}
PATH = "pkg/calc.py"
AUTHOR = ["-c", "user.name=x", "-c", "user.email=x@example.org"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose mutants the tools were asked for, in order."""
    found: list[str] = []

    def note(kind: type, name: str, path_of: Callable[[Any], str | None]) -> None:
        ask: Callable[..., Awaitable[Any]] = getattr(kind, name)

        async def noted(self: Any, question: Any, *rest: Any) -> Any:
            if (path := path_of(question)) is not None:
                found.append(path)
            return await ask(self, question, *rest)

        monkeypatch.setattr(kind, name, noted)

    note(ListingProgram, "ask", lambda question: question.get("path"))
    return found


async def by_mutmut(tmp_path: Path, **about: Any) -> Sequence[Mutant]:
    """What a new adapter discovers in the project."""
    async with Trial.of({path: text.encode() for path, text in FILES.items()}, tmp_path, here=False, **about) as trial:
        return await trial.discover()


def rows_in(store: Path) -> int:
    with closing(sqlite3.connect(store)) as connection:
        [count] = connection.execute("SELECT count(*) FROM answers").fetchone()
    return int(count)


def same(one: Sequence[Mutant], other: Sequence[Mutant]) -> bool:
    return [(mutant, mutant.handle, mutant.description) for mutant in one] == [
        (mutant, mutant.handle, mutant.description) for mutant in other
    ]


async def test_what_an_earlier_bridge_was_told_is_tested_also_where_the_project_was_moved(
    asked: list[str], tmp_path: Path
) -> None:
    await by_mutmut(tmp_path / "before")
    asked.clear()
    (tmp_path / "before").rename(tmp_path / "after")
    async with Trial.of("", tmp_path / "after", here=False) as trial:
        results = await trial.test()
    assert asked == []
    assert {result.status for result in results.values()} == {Status.KILLED}


async def test_the_next_bridge_asks_mutmut_again_only_when_the_answer_may_differ(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, root = await by_mutmut(tmp_path), tmp_path / "project"
    assert known
    assert sorted(asked) == ["pkg/__init__.py", PATH]
    [kept] = (tmp_path / "cache").rglob(NAME)
    assert rows_in(kept) == 2
    digest, moved = "msp_bridge.adapters.mutmut.discovery.digest_of_programs", "pkg/sums.py"
    left_out = f'{TABLE}do_not_mutate_patterns = ["twice"]\n'
    changes: dict[str, tuple[str, Callable[[], object]]] = {  # one after the other, and of which file is asked then
        "programs": (PATH, lambda: monkeypatch.setattr(digest, lambda _: "of another version")),
        "damage": (PATH, lambda: kept.write_bytes(kept.read_bytes()[:-5000])),
        "source": (PATH, lambda: (root / PATH).write_text(f"# moved\n{SOURCE}")),
        "moved": (moved, lambda: (root / PATH).rename(root / moved)),
        "lines left out": (moved, lambda: (root / "pyproject.toml").write_text(left_out)),
        "what mutmut can't read": (moved, lambda: (root / moved).write_text("def broken(:\n")),
    }
    for what, (path, change) in changes.items():
        asked.clear()
        assert same(await by_mutmut(tmp_path), known), what
        assert asked == [], what
        change()
        again = await by_mutmut(tmp_path)
        assert path in asked, what
        assert same(again, known) is (what in ("programs", "damage")), what
        assert any("*" in str(mutant.handle.original) for mutant in again) is (path == PATH or what == "moved"), what
        known = again
    asked.clear()
    assert await by_mutmut(tmp_path) == known == []
    assert asked == [moved]  # no answer to keep


async def test_the_next_bridge_asks_cosmic_ray_again_only_when_its_configuration_has_changed(
    asked: list[str], tmp_path: Path
) -> None:
    root = copied("cr_flat", tmp_path)
    async with adapter_on(root) as adapter:
        first = await discovered(adapter)
    count = len(asked)
    assert count
    assert first
    async with adapter_on(root) as adapter:
        assert same(await discovered(adapter), first)
        assert len(asked) == count
        [result] = await results_of(adapter, first[:1])
        assert result.mutant == first[0]
        assert result.status is not Status.RUNTIME_ERROR
    config = root / "cosmic-ray.toml"
    config.write_text(f"{config.read_text()}\n# other operators, perhaps\n")
    async with adapter_on(root) as adapter:
        assert same(await discovered(adapter), first)
    assert len(asked) > count


@pytest.mark.parametrize("more", ["git", "operators of others"])
async def test_what_cosmic_ray_says_of_more_is_not_kept(
    more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copied("cr_flat", tmp_path)
    if more == "git":
        config = root / "cosmic-ray.toml"
        config.write_text(f'{config.read_text()}\n[cosmic-ray.filters.git-filter]\nbranch = "main"\n')
        for command in (["init", "-q", "-b", "main"], ["add", "."], [*AUTHOR, "commit", "-q", "-m", "all"]):
            subprocess.run(["git", *command], cwd=root, check=True)
    async with adapter_on(root) as adapter:
        greeting = adapter._discovery.greeting

        async def with_operators_of_others() -> dict[str, Any]:
            return {**await greeting(), "versions": None}

        if more != "git":
            monkeypatch.setattr(adapter._discovery, "greeting", with_operators_of_others)
        assert await discovered(adapter)
    assert not list((tmp_path / "cache").rglob(NAME))
