"""Answers that are kept: the next bridge need not ask the tool again which mutants a file has."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.cosmic_ray_trees import adapter_on, copied, discovered, results_of
from support.mutmut_trial import Trial

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
    async with Trial.of({path: text.encode() for path, text in FILES.items()}, tmp_path, **about) as trial:
        return await trial.discover()


def rows_in(store: Path) -> int:
    with closing(sqlite3.connect(store)) as connection:
        [count] = connection.execute("SELECT count(*) FROM answers").fetchone()
    return int(count)


def same(one: Sequence[Mutant], other: Sequence[Mutant]) -> bool:
    return [(mutant, mutant.handle, mutant.description) for mutant in one] == [
        (mutant, mutant.handle, mutant.description) for mutant in other
    ]


async def test_the_next_bridge_does_not_ask_mutmut_again(asked: list[str], tmp_path: Path) -> None:
    first = await by_mutmut(tmp_path)
    assert sorted(asked) == ["pkg/__init__.py", PATH]
    assert first
    assert same(await by_mutmut(tmp_path), first)
    assert len(asked) == 2


async def test_what_an_earlier_bridge_was_told_is_tested(asked: list[str], tmp_path: Path) -> None:
    await by_mutmut(tmp_path)
    asked.clear()
    async with Trial.of("", tmp_path) as trial:
        results = await trial.test()
    assert asked == []
    assert {result.status for result in results.values()} == {Status.KILLED}


@pytest.mark.parametrize("change", ["source", "lines left out", "programs", "damage", "moved"])
async def test_mutmut_is_asked_again_when_the_answer_may_differ(
    change: str, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, root = await by_mutmut(tmp_path), tmp_path / "project"
    [kept] = (tmp_path / "cache").rglob(NAME)
    assert rows_in(kept) == 2
    asked.clear()
    match change:
        case "source":
            (root / PATH).write_text(f"# moved\n{SOURCE}")
        case "lines left out":
            (root / "pyproject.toml").write_text(f'{TABLE}do_not_mutate_patterns = ["twice"]\n')
        case "programs":
            digest = "msp_bridge.adapters.mutmut.discovery.digest_of_programs"
            monkeypatch.setattr(digest, lambda _: "of another version")
        case "damage":
            kept.write_bytes(kept.read_bytes()[:-5000])
        case "moved":
            (root / PATH).rename(root / "pkg/sums.py")
    again = await by_mutmut(tmp_path)
    path = "pkg/sums.py" if change == "moved" else PATH
    assert path in asked
    assert same(again, first) is (change in ("programs", "damage"))
    assert bool([mutant for mutant in again if "*" in str(mutant.handle.original)]) is (change != "lines left out")
    asked.clear()
    assert same(await by_mutmut(tmp_path), again)
    assert asked == []


async def test_a_text_that_mutmut_cannot_read_is_asked_for_again(asked: list[str], tmp_path: Path) -> None:
    await by_mutmut(tmp_path)
    (tmp_path / "project" / PATH).write_text("def broken(:\n")
    asked.clear()
    assert [await by_mutmut(tmp_path), await by_mutmut(tmp_path)] == [[], []]
    assert asked == [PATH, PATH]


async def test_the_next_bridge_does_not_ask_cosmic_ray_again(asked: list[str], tmp_path: Path) -> None:
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


async def test_cosmic_ray_is_asked_again_when_its_configuration_has_changed(asked: list[str], tmp_path: Path) -> None:
    root = copied("cr_flat", tmp_path)
    async with adapter_on(root) as adapter:
        first = await discovered(adapter)
    config = root / "cosmic-ray.toml"
    config.write_text(f"{config.read_text()}\n# other operators, perhaps\n")
    asked.clear()
    async with adapter_on(root) as adapter:
        assert same(await discovered(adapter), first)
    assert asked


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
