"""No verdict on the corpus differs from what a fresh process says: with namespaces and without, mutmut and cosmic-ray."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest
from attrs import define, field
from msp_bridge.adapters.cosmic_ray import CosmicRay
from msp_bridge.adapters.mutmut import Mutmut

from msp_bridge.adapter import Adapter, BaselineError, Mutant, Project, Result, Scope
from msp_bridge.testing import Oracle, Verdict, pytest_command

PYTHON = Path(os.environ.get("MSP_BRIDGE_CORPUS_PYTHON", sys.executable))  # of the projects
CORPUS = Path(__file__).parent.parent / "corpus"
KINDS = sorted(path.name for path in CORPUS.iterdir() if path.is_dir())
COSMIC_RAY_KINDS = ("at_import", "class_cells", "closures", "left_behind", "src_layout", "stack_frames", "xdist")
MOST = 12  # mutants of a project that are checked
MOST_OF_COSMIC_RAY = 6  # of its many
ATTEMPTS = 5  # at a run without a mutant, of a suite that fails by chance
CONFIGURATION = """
[cosmic-ray]
module-path = "{source}"
timeout = 20.0
excluded-modules = []
test-command = "python -m pytest -x -q -p no:cacheprovider"

[cosmic-ray.distributor]
name = "local"
"""


@define
class Truth:
    """What fresh processes have said of one project so far."""

    oracle: Oracle
    verdicts: dict[Mutant, Verdict] = field(factory=dict)


TRUTHS: dict[str, Truth] = {}  # each mutant is tested once, for all tests


def project_of(kind: str, directory: Path) -> Path:
    """A copy of the project, built where it has something to build."""
    root = Path(shutil.copytree(CORPUS / kind, directory / kind))
    for source in root.rglob("*.c"):
        compiler = shutil.which("cc")
        say = (
            "import sysconfig; print(sysconfig.get_path('include'), sysconfig.get_config_var('EXT_SUFFIX'), sep='\\n')"
        )
        include, suffix = subprocess.run([PYTHON, "-c", say], check=True, capture_output=True, text=True).stdout.split()
        if compiler is None or not Path(include, "Python.h").exists():
            pytest.skip("no compiler, or no headers of Python, for a C extension")
        built = source.with_name(source.stem + suffix)
        subprocess.run([compiler, "-shared", "-fPIC", f"-I{include}", source, "-o", built], check=True)
    return root


async def truth_of(kind: str, directory: Path) -> Truth:
    if kind not in TRUTHS:
        root = project_of(kind, directory / "truth")
        for attempt in range(ATTEMPTS):
            try:
                TRUTHS[kind] = Truth(await Oracle.of(root, pytest_command(PYTHON)))
                break
            except BaselineError:
                if kind != "flaky" or attempt == ATTEMPTS - 1:
                    raise
    return TRUTHS[kind]


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"
    )  # plug-ins that no project here needs take a second to load
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()


async def differences(kind: str, directory: Path, adapter_class: type[Adapter], most: int) -> list[str]:
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
            mutants = [mutant async for mutant in discovered]
        assert mutants
        if adapter_class is CosmicRay:
            mutants = random.Random(0).sample(mutants, min(most, len(mutants)))
        async with aclosing(adapter.test(mutants)) as tested:
            results: list[Result] = [result async for result in tested]
    assert {result.mutant for result in results} == set(mutants)
    truth = await truth_of(kind, directory)
    verification = await truth.oracle.compare(results, most, jobs=2, known=truth.verdicts)
    assert verification.checked
    return [str(difference) for difference in verification.differences]


@pytest.mark.parametrize("isolation", ["on", "off"])
@pytest.mark.parametrize("kind", KINDS)
async def test_mutmut_says_what_a_fresh_process_says(
    kind: str, isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isolation == "off":
        monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")
    for attempt in range(ATTEMPTS):
        found = await differences(kind, tmp_path / str(attempt), Mutmut, MOST)
        if not found or kind != "flaky":  # where a test fails by chance, what differs must differ each time
            break
    assert found == []


@pytest.mark.parametrize("kind", ["at_import", "left_behind"])
async def test_mutmut_says_so_too_where_the_kernel_has_no_overlays(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy stands at the project's path, and what a job has written there is undone by the journal."""
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "pid,tmp")
    assert await differences(kind, tmp_path, Mutmut, MOST) == []


@pytest.mark.parametrize("isolation", ["on", "off"])
@pytest.mark.parametrize("kind", COSMIC_RAY_KINDS)
async def test_cosmic_ray_says_what_a_fresh_process_says(
    kind: str, isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isolation == "off":
        monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")
    assert await differences(kind, tmp_path, CosmicRay, MOST_OF_COSMIC_RAY) == []
