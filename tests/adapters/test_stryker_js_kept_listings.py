"""Listings that are kept: the next bridge need not start StrykerJS to say which mutants there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest
from support.notices import unusable
from support.stryker_js_trees import CORE8, CORE9, adapter_on, configure, copied, discovered, findings_of, results_of

from msp_bridge.adapter import Mutant, Status
from msp_bridge.toolkit.kept_answers import NAME

LISTINGS = Path("cache", NAME)


async def listed(root: Path, *paths: str) -> tuple[Sequence[Mutant], bool]:
    """What a new adapter discovers, and whether StrykerJS had to say it."""
    async with adapter_on(root) as adapter:
        return await discovered(adapter, *paths), has_started()


def has_started() -> bool:
    """Whether StrykerJS runs. A version with a server does so after a discovery."""
    return any("stryker" in process.cmdline() for process in psutil.Process().children(recursive=True))


async def test_the_next_bridge_does_not_ask_again(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    first, started = await listed(root)
    assert started
    again, started = await listed(root)
    assert not started
    assert [(mutant, mutant.handle) for mutant in again] == [(mutant, mutant.handle) for mutant in first]
    part, started = await listed(root, "lib/price.js")
    assert not started
    assert part == [mutant for mutant in first if mutant.path == "lib/price.js"]


async def test_what_was_listed_by_an_earlier_bridge_is_tested(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    await listed(root)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter, "lib/price.js")
        assert not has_started()
        results = await results_of(adapter, mutants)
    assert {result.mutant for result in results} == set(mutants)
    assert Status.KILLED in {result.status for result in results}


async def test_what_has_changed_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = copied("js_mocha", tmp_path)
    kept = tmp_path / LISTINGS

    def another_version() -> None:
        monkeypatch.setattr("msp_bridge.adapters.stryker_js.discovery.FORMAT", 0)

    changes: dict[str, Callable[[], object]] = {
        "source": lambda: (root / "lib/price.js").write_text(f"// moved\n{(root / 'lib/price.js').read_text()}"),
        "version": another_version,
        "configuration": lambda: configure(root, mutator={"excludedMutations": ["StringLiteral"]}),
        "damage": lambda: kept.write_bytes(kept.read_bytes()[:-5000]),
        "new file": lambda: (root / "lib/new.js").write_text("exports.less = (a) => a - 1;\n"),
    }
    before, _ = await listed(root)
    for name, change in changes.items():
        change()
        again, started = await listed(root)
        assert started, name
        same = [(mutant, mutant.handle) for mutant in again] == [(mutant, mutant.handle) for mutant in before]
        assert same is (name in ("version", "damage")), name
        before = again
    assert await listed(root) == (before, False)


async def test_a_configuration_that_is_a_program_may_read_anything(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    options = (root / "stryker.config.json").read_text()
    (root / "stryker.config.json").unlink()
    (root / "stryker.config.cjs").write_text(f"module.exports = {options};\n")
    first, _ = await listed(root)
    assert first
    assert await listed(root) == (first, True)
    assert not (tmp_path / LISTINGS).exists()


@pytest.mark.parametrize("modules", [CORE9, CORE8], ids=["served", "command line"])
async def test_what_cannot_be_instrumented_is_told_again(modules: Path, tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, modules)
    (root / "lib/broken.js").write_text("export const = 1;\n")
    for _ in range(2):
        async with adapter_on(root) as adapter:
            [told] = await unusable(adapter)
            started = has_started()
        assert told.startswith("lib/broken.js: StrykerJS can't instrument it")
    assert not started


async def test_doctor_asks_strykerjs_itself(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    await listed(root)
    async with adapter_on(root) as adapter:
        findings = await findings_of(adapter)
        assert has_started()
    assert all(finding.good for finding in findings)


async def test_a_cache_that_cant_be_written_costs_nothing_but_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = copied("js_mocha", tmp_path)
    (tmp_path / LISTINGS).mkdir(parents=True)
    first, _ = await listed(root)
    assert first
    assert f"{NAME} can't be used, and this run goes on without it" in caplog.text
    assert await listed(root) == (first, True)
