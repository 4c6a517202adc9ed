"""Parts of workspaces, as pnpm and Yarn install them: the statuses of StrykerJS alone, and nothing is written anywhere."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msp_bridge.adapters.stryker_js.copy import Copy
from stryker_js_trees import TESTS, adapter_on, discovered, findings_of, project_at, results_of

from msp_bridge.model import Mutant
from msp_bridge.testing import TreeState

PNPM, PNP = (TESTS / "npm" / name for name in ("pnpm-workspace", "pnp"))


def pnpm(to: Path) -> Path:
    """A copy of the workspace that pnpm has installed, with its packages where pnpm has put them; its root."""
    assert (PNPM / "node_modules").is_dir(), f"{PNPM} isn't installed: `make test` does that"
    root = to / "workspace"
    shutil.copytree(PNPM, root, symlinks=True, ignore=lambda path, _: ["node_modules"] if path == str(PNPM) else [])
    (root / "node_modules").symlink_to(PNPM / "node_modules")
    return root


def plug_n_play(to: Path) -> Path:
    """The same workspace, with its packages in Yarn's archives; its root."""
    assert (PNP / ".pnp.cjs").is_file(), f"{PNP} isn't installed: `make test` does that"
    root = to / "workspace"
    shutil.copytree(PNP, root)
    for part in ("web", "math"):
        left_out = shutil.ignore_patterns("node_modules", "package.json")
        shutil.copytree(PNPM / "packages" / part, root / "packages" / part, ignore=left_out, dirs_exist_ok=True)
    return root


Layout = Callable[[Path], Path]
Statuses = dict[tuple[object, ...], str]
LAYOUTS = pytest.mark.parametrize("workspace", [pnpm, plug_n_play], ids=["pnpm", "plug'n'play"])


@LAYOUTS
async def test_a_part_of_a_workspace_has_the_statuses_of_strykerjs_alone(
    workspace: Layout, alone: Statuses, tmp_path: Path
) -> None:
    root = workspace(tmp_path)
    part = root / "packages" / "web"
    tree, installed = TreeState.of(root), TreeState.of(PNPM)
    async with adapter_on(part, nested=True, cache=tmp_path / "cache") as adapter:
        results = await results_of(adapter, await discovered(adapter))
        findings = await findings_of(adapter)
    assert [finding.text for finding in findings if not finding.good] == []
    assert tree.differences(TreeState.of(root)) == []
    assert installed.differences(TreeState.of(PNPM)) == []
    assert {key(result.mutant): result.status.value for result in results} == alone


def key(mutant: Mutant) -> tuple[object, ...]:
    start = mutant.location.start
    return mutant.path, mutant.mutator, start.line, start.column, mutant.replacement


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Statuses:
    """The statuses that StrykerJS itself reports."""
    part = pnpm(tmp_path_factory.mktemp("alone")) / "packages" / "web"
    program = part / "node_modules/@stryker-mutator/core/bin/stryker.js"
    subprocess.run(["node", program, "run", "--reporters", "json"], cwd=part, check=True, capture_output=True)
    files = json.loads((part / "reports/mutation/mutation.json").read_text())["files"]
    found = {}
    for path, file in files.items():
        for mutant in file["mutants"]:
            start = mutant["location"]["start"]
            found[path, mutant["mutatorName"], start["line"], start["column"], mutant["replacement"]] = mutant["status"]
    return found


@LAYOUTS
async def test_what_a_package_of_the_workspace_writes_beside_itself_stays_in_its_copy(
    workspace: Layout, tmp_path: Path
) -> None:
    root = workspace(tmp_path)
    source = root / "packages/math/lib/sum.js"
    source.write_text(
        "import { writeFileSync } from 'node:fs';\n"
        "for (const name of ['new', 'sum']) writeFileSync(new URL(`./${name}.txt`, import.meta.url), 'written');\n"
        + source.read_text()
    )
    source.with_name("sum.txt").write_text("mine")
    spec = root / "packages/web/test/basket.spec.js"
    spec.write_text("import fs from 'node:fs';\nfs.writeFileSync('../../../math/beside.txt', '');\n" + spec.read_text())
    tree = TreeState.of(root)
    async with adapter_on(root / "packages/web", nested=True, cache=tmp_path / "cache") as adapter:
        mutants = await discovered(adapter)
        before = {result.mutant: result.status.value for result in await results_of(adapter, mutants)}
        assert tree.differences(TreeState.of(root)) == []
        source.write_text(source.read_text().replace("total += number", "total -= number"))
        spec.write_text(spec.read_text().replace("5", "0"))
        assert {result.mutant: result.status.value for result in await results_of(adapter, mutants)} != before
    assert sorted(before.values()) == ["Killed"] * 5 + ["Survived"]
    written = {file.name for file in (tmp_path / "cache").rglob("*.txt")}
    assert written == {"new.txt", "sum.txt", "beside.txt"}


def npm(root: Path, **dependencies: list[str]) -> Path:
    """A workspace as npm lays it out, with a link in `node_modules` to each package, which depends on these; its root."""
    (root / "node_modules" / "@own").mkdir(parents=True)
    (root / "package.json").write_text('{"workspaces": ["packages/*"]}')
    for name, needed in dependencies.items():
        part = root / "packages" / name
        part.mkdir(parents=True)
        (part / "package.json").write_text(json.dumps({"dependencies": {f"@own/{other}": "*" for other in needed}}))
        (root / "node_modules" / "@own" / name).symlink_to(f"../../packages/{name}")
    return root


def refreshed(root: Path, to: Path) -> Copy:
    copy = Copy.claim(project_at(root, cache=to / "cache"))
    copy.refresh()
    return copy


def test_what_a_package_needs_of_its_workspace_is_copied_also_by_way_of_others_and_in_circles(tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["shop"], shop=["math"], math=["web"], other=[])
    copy = refreshed(root / "packages/web", tmp_path)
    packages = copy.path.parent
    installed = packages.parent / "node_modules" / "@own"
    for name in ("web", "shop", "math"):
        place = (packages / name).resolve()
        assert place.is_relative_to(tmp_path / "cache")
        assert (installed / name).resolve() == place
        assert (place / "../../node_modules/@own").resolve() == installed, "from everywhere the same is found"
        assert place.parent.joinpath("other").resolve() == root / "packages" / "other"
    assert (installed / "other").resolve() == root / "packages" / "other", "nobody needs it"
    (root / "packages/web/package.json").write_text("{}")
    copy.refresh()
    assert (installed / "math").resolve() == root / "packages" / "math"
    copy.close()


def test_packages_within_the_project_are_those_of_the_copy(tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["shop"], shop=[])
    copy = refreshed(root, tmp_path)
    for name in ("web", "shop"):
        assert (copy.path / "node_modules/@own" / name).resolve() == copy.path / "packages" / name
    copy.close()


def test_an_edit_in_a_package_that_is_needed_is_noticed(tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["shop"], shop=[], other=[])
    copy = refreshed(root / "packages/web", tmp_path)
    states = [copy.state]
    for name in ("other", "shop"):
        (root / "packages" / name / "edited.js").write_text("")
        copy.refresh()
        states.append(copy.state)
    assert states[0] == states[1] != states[2]
    copy.close()
