"""Parts of workspaces, as pnpm and Yarn install them: the statuses of StrykerJS alone, and nothing is written anywhere."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msp_bridge.adapters.stryker_js.sandbox import ProjectSandbox
from support import files
from support.adapters import discovered, findings_of, project_at, results_of
from support.stryker_js_trees import CORE9, TESTS, adapter_on, configure, copied

from msp_bridge.model import Mutant, Status
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
    (tmp_path / "link").symlink_to(root)
    opened = tmp_path / "link" if workspace is pnpm else root  # Plug'n'Play does not work through a link
    part = opened / "packages" / "web"
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
    workspace: Layout, isolated: bool, tmp_path: Path
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
        results = await results_of(adapter, await discovered(adapter))
    assert tree.differences(TreeState.of(root)) == []
    assert all(result.duration is not None for result in results), "StrykerJS is watched in archives, too"
    assert sorted(result.status.value for result in results) == ["Killed"] * 5 + ["Survived"]
    written = {file.name for file in (tmp_path / "cache").rglob("*.txt")}
    above = {"beside.txt"}  # isolated, it is dropped
    assert (written | above if isolated else written) == {"new.txt", "sum.txt", *above}


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


COPIES: list[ProjectSandbox] = []  # of one test


@pytest.fixture(autouse=True)
def closed_copies() -> Iterator[None]:
    yield
    while COPIES:
        COPIES.pop().close()


def refreshed(root: Path, to: Path) -> ProjectSandbox:
    COPIES.append(copy := ProjectSandbox.claim(project_at(root, cache=to / "cache")))
    copy.refresh()
    return copy


def test_what_a_package_needs_of_its_workspace_is_copied_also_indirectly(tmp_path: Path) -> None:
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


def test_packages_within_the_project_are_those_of_the_copy(tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["shop"], shop=[])
    copy = refreshed(root, tmp_path)
    for name in ("web", "shop"):
        assert (copy.path / "node_modules/@own" / name).resolve() == copy.path / "packages" / name


def test_a_look_sees_packages_that_were_edited_installed_or_needed(tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["shop"], shop=[], other=[])
    copy = refreshed(root / "packages/web", tmp_path)
    cached = TreeState.of(tmp_path / "cache")
    before = copy.state
    (root / "packages/other/edited.js").write_text("")
    assert copy.is_current(), "nobody needs it"
    for file, text in (
        ("packages/web/a.js", ""),
        ("packages/shop/edited.js", ""),
        ("packages/shop/package.json", '{"dependencies": {"@own/other": "*"}}'),
        ("node_modules/@own/fresh/package.json", "{}"),
        ("node_modules/.package-lock.json", "{}"),
    ):
        assert copy.is_current(), f"before {file} is written"
        (root / file).parent.mkdir(exist_ok=True)
        (root / file).write_text(text)
        assert not copy.is_current(), file
        if file == "packages/web/a.js":
            assert cached.differences(TreeState.of(tmp_path / "cache")) == [], "a look writes nothing"
        copy.refresh()
        assert copy.state != before, file
        before = copy.state
    assert copy.is_current()
    (root / "packages/other/edited.js").write_text("again")
    assert not copy.is_current(), "it is needed by now"


def test_settings_that_a_part_of_a_repository_extends_are_beside_its_copy(tmp_path: Path) -> None:
    settings = tmp_path / "repository/tsconfig.base.json"
    files.written(settings.parent, {"web/package.json": "{}", settings.name: "{}"})
    copy = refreshed(settings.parent / "web", tmp_path)
    assert (copy.path.parent / settings.name).read_text() == "{}"
    assert copy.is_current()
    settings.write_text('{"compilerOptions": {}}')
    assert not copy.is_current()


@pytest.mark.parametrize("part", ["web", "shop"])
def test_a_copy_that_was_deleted_is_not_current(part: str, tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["shop"], shop=[])
    copy = refreshed(root / "packages/web", tmp_path)
    shutil.rmtree((copy.path.parent / part).resolve())
    assert not copy.is_current()
    copy.refresh()
    assert copy.is_current()
    assert (copy.path.parent / part / "package.json").is_file()


def linked(to: Path, name: str = "lib") -> tuple[Path, Path]:
    """A project with a package that is only linked to, as by `npm link`: their directories."""
    project, package = to / "project", to / "elsewhere" / "lib"
    (project / "node_modules" / name).parent.mkdir(parents=True)
    (package / "src").mkdir(parents=True)
    (package / "src" / "index.js").write_text("export const expected = 3;")
    (project / "package.json").write_text("{}")
    (project / "node_modules" / name).symlink_to(package)
    return project, package


YARNS_MAP = """{"packageLocation": "./"}, {"packageLocation": "../elsewhere/lib/"},
{"packageLocation": "../.yarn/berry/cache/all-npm-1.0.0-0.zip/node_modules/all/"}"""


@pytest.mark.parametrize("link", ["lib", "@scope/lib", "in Yarn's map"])
def test_an_edit_in_a_package_that_is_only_linked_to_is_noticed(link: str, tmp_path: Path) -> None:
    project, package = linked(tmp_path, link)
    if link == "in Yarn's map":
        shutil.rmtree(project / "node_modules")
        (project / ".pnp.cjs").write_text(YARNS_MAP)
    copy = refreshed(project, tmp_path)
    before = copy.state
    copy.refresh()
    assert copy.is_current()
    assert copy.state == before
    (package / "src" / "index.js").write_text("export const expected = null;")
    assert not copy.is_current()
    copy.refresh()
    assert copy.is_current()
    assert copy.state != before


def test_an_edit_of_a_linked_package_is_noticed_but_none_of_an_installed_one(
    tmp_path: Path,
) -> None:
    project, package = linked(tmp_path)
    further = tmp_path / "elsewhere" / "further"
    further.mkdir()
    (package / "node_modules" / "installed").mkdir(parents=True)
    (package / "node_modules" / "further").symlink_to(further)
    (further / "back").symlink_to(package)
    copy = refreshed(project, tmp_path)
    before = copy.state
    (package / "node_modules" / "installed" / "index.js").write_text("")
    copy.refresh()
    assert copy.state == before
    (further / "index.js").write_text("")
    copy.refresh()
    assert copy.state != before


def test_another_directory_behind_a_link_is_noticed(tmp_path: Path) -> None:
    project, package = linked(tmp_path)
    shutil.copytree(package, tmp_path / "elsewhere" / "other")
    copy = refreshed(project, tmp_path)
    (project / "node_modules" / "lib").unlink()
    (project / "node_modules" / "lib").symlink_to(tmp_path / "elsewhere" / "other")
    assert not copy.is_current()


def test_a_package_that_has_an_impossible_name_is_passed_over(tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["x" * 300, "math"], math=[])
    copy = refreshed(root / "packages/web", tmp_path)
    assert (copy.path.parent / "math").resolve().is_relative_to(tmp_path / "cache")


def test_packages_that_stand_in_a_directory_that_is_closed_to_us_are_passed_over(tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["math"], math=[])
    closed = root / "packages/web/node_modules"
    closed.mkdir()
    closed.chmod(0)
    if os.access(closed, os.R_OK):  # as root, nothing is closed
        pytest.skip("nothing is closed to this user")
    try:
        copy = refreshed(root / "packages/web", tmp_path)
        assert (copy.path.parent.parent / "node_modules/@own/math").resolve().is_relative_to(tmp_path / "cache")
    finally:
        closed.chmod(0o755)


def test_what_tools_write_again_in_node_modules_stays_in_the_copy(tmp_path: Path) -> None:
    project = tmp_path / "project"
    modules = project / "node_modules"
    (modules / ".prisma/client").mkdir(parents=True)
    (project / "package.json").write_text("{}")
    files = (".package-lock.json", ".tsbuildinfo", ".prisma/client/index.js")
    for name in files:
        (modules / name).write_text("mine")
    copy = refreshed(project, tmp_path)
    ours = copy.path / "node_modules"
    assert [(ours / name).exists() for name in files] == [True, False, True]
    tree = TreeState.of(project)
    for name in (*files, ".prisma/client/new.js"):
        (ours / name).write_text("theirs")
    copy.refresh()
    assert tree.differences(TreeState.of(project)) == []
    assert [(ours / name).read_text() for name in files] == ["mine", "theirs", "mine"]
    assert not (ours / ".prisma/client/new.js").exists()
    (modules / files[-1]).write_text("generated anew")
    assert not copy.is_current()
    copy.refresh()
    assert (ours / files[-1]).read_text() == "generated anew"
    shutil.rmtree(modules / ".prisma")
    copy.refresh()
    assert not (ours / ".prisma").exists()


def test_what_tools_write_again_above_the_project_stays_beside_the_copy(tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["math"], math=[])
    names = (".swcrc", "tsconfig.tsbuildinfo")
    for name in names:
        (root / name).write_text("mine")
    copy = refreshed(root / "packages/web", tmp_path)
    tops = (copy.path.parents[1], (copy.path.parent / "math").resolve().parents[1])
    tree = TreeState.of(root)
    ours = [top / name for top in tops for name in names]
    assert [file.read_text() for file in ours] == ["mine"] * 4
    for file in ours:
        file.write_text("theirs")
    assert tree.differences(TreeState.of(root)) == []
    (root / names[0]).write_text("edited")
    (root / names[1]).unlink()
    copy.refresh()
    for top in tops:
        assert (top / names[0]).read_text() == "edited"
        assert not (top / names[1]).exists()


def test_packages_whose_names_look_alike_have_copies_of_their_own(tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["x", "y"])
    for name, package in (("x", "a+b"), ("y", "a/b")):
        (root / "packages" / package).mkdir(parents=True)
        (root / "node_modules/@own" / name).symlink_to(root / "packages" / package)
        (root / "packages" / package / "name.js").write_text(package)
    copy = refreshed(root / "packages/web", tmp_path)
    installed = copy.path.parents[1] / "node_modules/@own"
    assert [(installed / name / "name.js").read_text() for name in ("x", "y")] == ["a+b", "a/b"]


def test_nothing_stands_beside_the_copy_for_what_is_gone(tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["math"], math=[], other=[])
    (root / "packages/math/node_modules").mkdir()
    copy = refreshed(root / "packages/web", tmp_path)
    beside, math = copy.path.parent, (copy.path.parent / "math").resolve()
    assert (math.parent / "other").is_symlink()
    shutil.rmtree(root / "packages/other")
    shutil.rmtree(root / "node_modules")
    copy.refresh()
    assert not os.path.lexists(beside / "other")
    assert not os.path.lexists(beside.parent / "node_modules")
    assert (beside / "math").resolve() == root / "packages/math", "it isn't installed any more"


def test_the_copy_of_a_package_that_nobody_needs_any_more_is_erased(tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["math"], math=["shop"], shop=[])
    copy = refreshed(root / "packages/web", tmp_path)
    shop = (copy.path.parent / "shop").resolve()
    (root / "packages/math/package.json").write_text("{}")
    copy.refresh()
    assert not shop.exists()
    assert [found.parent.name for found in (tmp_path / "cache").rglob("package.json")].count("shop") == 0
    (root / "packages/math/package.json").write_text('{"dependencies": {"@own/shop": "*"}}')
    copy.refresh()
    assert (copy.path.parent / "shop").resolve() == shop
    assert (shop / "package.json").read_text() == (root / "packages/shop/package.json").read_text()


def written(root: Path, *names: str) -> Path:
    """A directory with these files; a package.json is an empty one."""
    return files.written(root, dict.fromkeys(names, "{}"))


@pytest.mark.parametrize(
    ("project", "before", "after", "beside"),
    [
        (
            "code/shop/web",
            ["code/package.json", "code/shop/package.json"],
            ["code/shop/package.json"],
            "code/web/mine.js",
        ),
        ("code/shop/web", ["code/shop/package.json"], ["code/package.json"], "code/shop/shop/mine.js"),
    ],
    ids=["the root moves down", "the root moves up"],
)
def test_links_beside_the_copy_do_not_matter_when_the_workspace_moves(
    project: str, before: list[str], after: list[str], beside: str, tmp_path: Path
) -> None:
    written(tmp_path, f"{project}/package.json", f"{project}/a.js", beside, *before)
    refreshed(tmp_path / project, tmp_path).close()
    for file in set(before) - set(after):
        (tmp_path / file).unlink()
    written(tmp_path, *after)
    tree = TreeState.of(tmp_path / "code")
    copy = refreshed(tmp_path / project, tmp_path)
    copy.clear()
    assert tree.differences(TreeState.of(tmp_path / "code")) == []
    assert copy.path.is_relative_to((tmp_path / "cache").resolve())
    assert (copy.path / "a.js").is_file()


def test_a_link_that_a_tool_puts_in_the_place_of_the_copy_is_not_followed(tmp_path: Path) -> None:
    project, other = written(tmp_path / "project", "package.json"), written(tmp_path / "other", "mine.js")
    copy = refreshed(project, tmp_path)
    place = copy.path
    shutil.rmtree(place)
    place.symlink_to(other)
    tree = TreeState.of(other)
    copy.clear()
    copy.refresh()
    assert tree.differences(TreeState.of(other)) == []
    assert (place / "package.json").is_file()


@pytest.mark.parametrize("environment", [".venv", "named"])
def test_packages_in_an_environment_of_python_stay_when_a_tool_links_to_it(environment: str, tmp_path: Path) -> None:
    files = ("pyvenv.cfg", "lib/node_modules/npm/index.js")
    project = written(tmp_path / "project", "package.json", *(f"{environment}/{file}" for file in files))
    copy = refreshed(project, tmp_path)
    assert sorted(os.listdir(copy.path)) == ["package.json"]
    (copy.path / environment).symlink_to(project / environment)
    tree = TreeState.of(project)
    copy.refresh()
    assert tree.differences(TreeState.of(project)) == []


def test_members_in_a_scope_that_is_a_link_are_copied(tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["math"], math=[])
    shutil.rmtree(root / "node_modules/@own")
    (root / "node_modules/@own").symlink_to("../packages")
    copy = refreshed(root / "packages/web", tmp_path)
    assert (copy.path.parents[1] / "node_modules/@own/math").resolve().is_relative_to(tmp_path / "cache")


def test_a_member_finds_what_is_installed_between_it_and_the_root(tmp_path: Path) -> None:
    root = written(tmp_path / "workspace", "package.json", "libs/math/package.json", "libs/node_modules/dep/index.js")
    written(root, "apps/web/package.json")
    (root / "apps/web/package.json").write_text('{"dependencies": {"math": "*"}}')
    (root / "node_modules").mkdir()
    (root / "node_modules/math").symlink_to("../libs/math")
    copy = refreshed(root / "apps/web", tmp_path)
    math = (copy.path.parents[1] / "node_modules/math").resolve()
    assert math.is_relative_to(tmp_path / "cache")
    assert (math.parent / "node_modules/dep/index.js").is_file()


@pytest.mark.parametrize("place", ["node_modules", "node_modules/@own", "packages"])
def test_what_a_tool_leaves_in_the_way_is_replaced(place: str, tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["math"], math=[])
    copy = refreshed(root / "packages/web", tmp_path)
    ours = copy.path.parents[1] / place
    shutil.rmtree(ours)
    ours.write_text("a file")
    copy.refresh()
    assert (copy.path.parents[1] / "node_modules/@own/math/package.json").is_file()
    ours.chmod(0o500)
    copy.refresh()
    assert ours.stat().st_mode & 0o777 == 0o700


def test_a_link_in_the_place_of_the_copies_of_members_is_not_followed(tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=[])
    copy = refreshed(root / "packages/web", tmp_path)
    other = written(tmp_path / "other", "mine/a.js")
    copy.path.parents[2].joinpath("members").symlink_to(other)
    copy.refresh()
    assert (other / "mine/a.js").is_file()


def test_packages_in_scopes_are_not_taken_for_edited_ones(tmp_path: Path) -> None:
    project = written(tmp_path / "project", "package.json")
    packages = written(tmp_path / "packages", "@babel/core/index.js")
    (project / "node_modules").symlink_to(packages)
    copy = refreshed(project, tmp_path)
    (packages / "@babel/core/index.js").write_text("by hand")
    assert copy.is_current()


def test_what_tests_install_is_gone_for_the_next_run_and_what_tools_keep_stays(tmp_path: Path) -> None:
    project = written(tmp_path / "project", "package.json", "node_modules/one/index.js")
    copy = refreshed(project, tmp_path)
    written(copy.path / "node_modules", "two/index.js", ".cache/kept")
    copy.refresh()
    assert sorted(os.listdir(copy.path / "node_modules")) == [".cache", "one"]


def test_what_prisma_generates_in_the_store_of_pnpm_is_noticed(tmp_path: Path) -> None:
    store = "node_modules/.pnpm/@prisma+client@5/node_modules"
    project = written(tmp_path / "project", "package.json", f"{store}/@prisma/client/index.js", f"{store}/.prisma/a.js")
    (project / "node_modules/@prisma").mkdir()
    (project / "node_modules/@prisma/client").symlink_to(f"../../{store}/@prisma/client")
    copy = refreshed(project, tmp_path)
    assert copy.is_current()
    (project / store / ".prisma/a.js").write_text("generated anew")
    assert not copy.is_current()


def test_a_large_hidden_file_above_is_copied_once_and_counts_as_do_the_members(tmp_path: Path) -> None:
    root = npm(tmp_path / "workspace", web=["math"], math=[])
    (root / ".blob").write_bytes(bytes(100_000))
    (root / "packages/math/data").write_bytes(bytes(50_000))
    copy = refreshed(root / "packages/web", tmp_path)
    math = (copy.path.parents[1] / "node_modules/@own/math").resolve()
    assert (math.parents[1] / ".blob").resolve() == copy.path.parents[1] / ".blob"
    assert int((tmp_path / "cache/copies/copy-0.lock").read_text()) > 50_000


PARITY = """#!/usr/bin/env node
module.exports = (number) => number % 2 === 0;
if (require.main === module) console.log('even');
"""
OF_PARITY = """import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import built from 'built';
import parity from 'parity';
it('is even', () => assert.equal(parity(2), built));
it('is a program', () => assert.equal(String(execFileSync('packages/parity/index.cjs')), 'even\\n'));
"""


async def test_tests_at_the_root_of_a_workspace_run_the_mutants_of_its_packages(tmp_path: Path) -> None:
    """They find packages through `node_modules`. One whose built code the sandbox lacks is the project's own there."""
    root = copied("js_mocha", tmp_path, None)
    content = {
        "test/parity.spec.js": OF_PARITY,
        "packages/parity/package.json": json.dumps({"name": "parity", "exports": {".": "./index.cjs"}}),
        "packages/parity/index.cjs": PARITY,
        "packages/built/package.json": json.dumps({"name": "built", "main": "dist/index.cjs"}),
        "packages/built/dist/index.cjs": "module.exports = true;\n",
    }
    files.written(root, content)
    (root / "packages/parity/index.cjs").chmod(0o755)
    (root / "node_modules").mkdir()
    for name in ("parity", "built"):
        (root / "node_modules" / name).symlink_to(f"../packages/{name}")
    for entry in CORE9.iterdir():
        (root / "node_modules" / entry.name).symlink_to(entry)
    configure(root, mutate=["packages/parity/*"], ignorePatterns=["packages/built/dist"])
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    statuses = {result.mutant.replacement: (result.status, result.killed_by) for result in results}
    assert statuses["number % 2 !== 0"] == (Status.KILLED, ("is even",))
    assert statuses['""'] == (Status.KILLED, ("is a program",))
