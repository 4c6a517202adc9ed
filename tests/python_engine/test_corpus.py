"""No verdict on the corpus differs from what a fresh process says: with namespaces and without, mutmut and cosmic-ray."""

import random
import sys
from contextlib import aclosing
from pathlib import Path

import pytest
from msp_bridge.adapters.cosmic_ray import CosmicRay
from msp_bridge.adapters.mutmut import Mutmut
from support.corpus import ATTEMPTS, BY_CHANCE, KINDS, PYTHON, Truths, modules_of, project_of
from support.mutmut_trial import AskedHere

from msp_bridge.adapter import Adapter, Mutant, Project, Result, Scope

OF_MUTMUT = AskedHere if Path(sys.executable) == PYTHON else Mutmut
COSMIC_RAY_KINDS = ("at_import", "awkward_code", "late_imports", "left_behind", "src_layout")
# Code and tests that have no effect outside of their process: the engine does the same whether they are isolated or not.
WITHOUT_EFFECTS = """awkward_code c_extension doctests flaky known_wrong leak module_state namespace_package needs_another
random_numbers random_order real_time recompiled registries session_fixture src_layout unittest_suite"""
MOST = 12  # mutants of a module that are checked
ANEW = 1  # of a project's, in a fresh process whatever is kept
MOST_OF_COSMIC_RAY = 6  # of its many
CONFIGURATION = """
[cosmic-ray]
module-path = "{source}"
timeout = 5.0
excluded-modules = []
test-command = "python -m pytest -x -q -p no:cacheprovider"

[cosmic-ray.distributor]
name = "local"
"""


@pytest.fixture(scope="module")
def truths(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Truths:
    """What is tested in a fresh process is so once, for all tests; in the main ring, only what no kept verdict confirms."""
    return Truths(tmp_path_factory.mktemp("truth"), anew=0 if request.config.option.main else ANEW)


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()


async def differences(truths: Truths, kind: str, directory: Path, adapter_class: type[Adapter], most: int) -> list[str]:
    """Test all mutants (of cosmic-ray as many as are checked), and check some of them."""
    root = project_of(kind, directory)
    if adapter_class is CosmicRay:
        source = "src" if (root / "src").is_dir() else "subject"
        (root / "cosmic-ray.toml").write_text(CONFIGURATION.format(source=source))
    project = Project(root, directory / "cache", python=PYTHON, jobs=2)
    adapter = adapter_class.detect(project)
    assert adapter is not None
    async with aclosing(adapter):
        async with aclosing(adapter.discover(Scope())) as discovered:
            mutants = [mutant async for mutant in discovered if isinstance(mutant, Mutant)]
        assert mutants
        if adapter_class is CosmicRay:
            mutants = random.Random(0).sample(mutants, min(most * modules_of(kind), len(mutants)))
        async with aclosing(adapter.test(mutants)) as tested:
            results = [result async for result in tested if isinstance(result, Result)]
    assert {result.mutant for result in results} == set(mutants)
    if kind == "undone":  # it replaces what the engine's processes report with: each reports, or is ended by a signal
        assert [result for result in results if "exit code" in (result.status_reason or "")] == []
    return await truths.differences(kind, results, most)


@pytest.mark.parametrize(
    ("kind", "isolation"),
    [
        (kind, isolation)
        for kind in KINDS
        for isolation in ("on", "guard")
        if isolation == "on" or kind not in WITHOUT_EFFECTS.split()
    ],
)
async def test_mutmut_says_what_a_fresh_process_says(
    kind: str, isolation: str, truths: Truths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isolation == "guard":
        monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "guard")
    for attempt in range(ATTEMPTS):
        found = await differences(truths, kind, tmp_path / str(attempt), OF_MUTMUT, MOST)
        if not found or kind != BY_CHANCE:  # where a test fails by chance, what differs must differ each time
            break
    assert found == []


@pytest.mark.parametrize("kind", ["at_import", "left_behind"])
async def test_mutmut_says_so_too_where_the_kernel_has_no_overlays(
    kind: str, truths: Truths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy stands at the project's path, and what a job has written there is undone by the journal."""
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "pid,tmp")
    assert await differences(truths, kind, tmp_path, OF_MUTMUT, MOST) == []


@pytest.mark.parametrize(("kind", "isolation"), [*((kind, "on") for kind in COSMIC_RAY_KINDS), ("left_behind", "off")])
async def test_cosmic_ray_says_what_a_fresh_process_says(
    kind: str, isolation: str, truths: Truths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isolation == "off":
        monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")
    assert await differences(truths, kind, tmp_path, CosmicRay, MOST_OF_COSMIC_RAY) == []
