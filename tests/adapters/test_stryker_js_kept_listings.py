"""Listings that are kept: the next bridge need not start StrykerJS to say which mutants there are."""

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from support.adapters import discovered, findings_of, results_of, unusable
from support.stryker_js_trees import BOTH, CORE9, SERVER, adapter_on, configure, copied, scripted

from msp_bridge.adapter import Mutant, Status
from msp_bridge.toolkit.kept_answers import NAME

LISTINGS = Path("cache", NAME)


def has_started() -> bool:
    """Whether StrykerJS runs. A version with a server does so after a discovery."""
    return any("stryker" in process.cmdline() for process in psutil.Process().children(recursive=True))


@BOTH
async def test_the_next_bridge_lists_and_tests_the_same_and_only_doctor_asks_again(
    modules: Path, tmp_path: Path
) -> None:
    root = copied("js_mocha", tmp_path, modules)
    (root / "lib/broken.js").write_text("export const = 1;\n")
    async with adapter_on(root) as adapter:
        first = await discovered(adapter)
        assert has_started() is (modules is CORE9)
        told = await unusable(adapter)
    [reason] = told
    assert reason.startswith("lib/broken.js: StrykerJS can't instrument it")
    some = [mutant for mutant in first if mutant.path == "lib/price.js"]
    async with adapter_on(root) as adapter:
        again = await discovered(adapter)
        assert [(mutant, mutant.handle) for mutant in again] == [(mutant, mutant.handle) for mutant in first]
        assert await discovered(adapter, "lib/price.js") == some
        assert await unusable(adapter) == told
        assert not has_started()
        assert all(finding.good for finding in await findings_of(adapter))
        assert has_started() is (modules is CORE9)
        results = await results_of(adapter, some)
    assert {result.mutant for result in results} == set(some)
    assert Status.KILLED in {result.status for result in results}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a StrykerJS that never lists twice the same."""
    never = SERVER.replace("replacement: 'x'", "replacement: String(process.hrtime.bigint())")
    return scripted(tmp_path, never)


async def listed(root: Path) -> list[Mutant]:
    """What a new adapter discovers."""
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
    assert mutants
    return mutants


async def test_what_has_changed_is_asked_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = root.parent / LISTINGS

    def another_version() -> None:
        monkeypatch.setattr("msp_bridge.adapters.stryker_js.discovery.FORMAT", 0)

    changes: dict[str, Callable[[], object]] = {
        "source": lambda: (root / "lib/price.js").write_text(f"// moved\n{(root / 'lib/price.js').read_text()}"),
        "version": another_version,
        "configuration": lambda: configure(root, mutator={"excludedMutations": ["StringLiteral"]}),
        "damage": lambda: kept.write_bytes(kept.read_bytes()[:-5000]),
        "new file": lambda: (root / "lib/new.js").write_text("exports.less = (a) => a - 1;\n"),
    }
    before = await listed(root)
    for name, change in changes.items():
        change()
        now = await listed(root)
        assert now != before, name
        before = now
    assert await listed(root) == before


async def test_a_configuration_that_is_a_program_may_read_anything(root: Path) -> None:
    options = (root / "stryker.config.json").read_text()
    (root / "stryker.config.json").unlink()
    (root / "stryker.config.cjs").write_text(f"module.exports = {options};\n")
    assert await listed(root) != await listed(root)
    assert not (root.parent / LISTINGS).exists()


async def test_a_cache_that_cant_be_written_costs_nothing_but_time(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (root.parent / LISTINGS).mkdir(parents=True)
    assert await listed(root) != await listed(root)
    assert f"{NAME} can't be used, and this run goes on without it" in caplog.text
