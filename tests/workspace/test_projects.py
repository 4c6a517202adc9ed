"""Which tools are set up where, which files each gets, and what is wrong with the others."""

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Self

import pytest
from attrs import evolve
from support.scripted.scripted_adapter import Scripted
from support.scripted_trees import Tree, paths, statuses

from msp_bridge.adapter import Project
from msp_bridge.environment.distributions import EntryPoint, installed
from msp_bridge.errors import SEE_DOCTOR, BridgeError, ConfigurationError
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.detection import project_root
from msp_bridge.workspace.diagnosis import diagnose
from msp_bridge.workspace.projects import ProjectFolder, ProjectMap
from msp_bridge.workspace.workspace import Workspace

PROJECTS = Path(__file__).parents[1] / "projects"


def project(projects: ProjectMap, folder: str) -> Project:
    """What the scripted tool of `folder` gets."""
    (found,) = [one for one in projects.folders if one.path == folder]
    return found.candidates[0].project


def found_in(tree: Tree, options: Configuration | None = None, named: str | None = None) -> list[str]:
    return [tool.label for tool in tree.opened(options, named).tools]


def test_each_folder_with_a_tool_is_a_project(tree: Tree) -> None:
    for folder in ("", "web/", "services/api/"):
        tree.project(folder)
    assert found_in(tree) == ["scripted", "scripted in web/", "scripted in services/api/"]


def test_a_project_gets_the_settings_of_its_folder(tree: Tree) -> None:
    tree.project("web/")
    tree.write("msp-bridge.toml", "jobs = 5\n[folders.web]\njobs = 2\nscripted = {a = 1}\n")
    projects = tree.detect()
    web, root = project(projects, "web/"), project(projects, "")
    assert (web.root, web.nested, web.settings, web.jobs) == (tree.root / "web", True, {"a": 1}, 2)
    assert (root.root, root.nested, root.settings, root.jobs) == (tree.root, False, {}, 5)


def test_the_cache_of_a_project_never_lies_in_the_tree_around_it(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.project("web/")
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tree.root / "cache"))
    assert not project(tree.detect(), "web/").cache.is_relative_to(tree.root)


def test_a_folder_can_be_switched_off_with_all_that_is_in_it(tree: Tree) -> None:
    for folder in ("", "examples/one/", "web/"):
        tree.project(folder)
    tree.write("msp-bridge.toml", "[folders.examples]\nadapter = []\n")
    assert found_in(tree) == ["scripted", "scripted in web/"]


def test_the_root_can_be_switched_off_alone(tree: Tree) -> None:
    for folder in ("", "web/"):
        tree.project(folder)
    tree.write("msp-bridge.toml", "adapter = []\n[folders.web]\nadapter = 'scripted'\n")
    assert found_in(tree) == ["scripted in web/"]


def test_a_folders_own_file_goes_before_what_is_said_around_it(tree: Tree) -> None:
    tree.project("web/")
    tree.write("msp-bridge.toml", "[folders.web]\nadapter = []\njobs = 3\n")
    tree.write("web/msp-bridge.toml", "adapter = 'scripted'\n")
    assert found_in(tree) == ["scripted in web/"]


def test_a_choice_for_a_folder_keeps_its_files_in_folders_below(tree: Tree) -> None:
    tree.project("web/")
    tree.write("web/part/scripted.txt")
    tree.project("web/part/", files="*.js")
    tree.write("web/part/a.py", "1")
    tree.write("msp-bridge.toml", "[folders.web]\nadapter = 'scripted'\n[folders.'web/part']\njobs = 1\n")
    assert found_in(tree) == ["scripted in web/", "scripted in web/part/"]
    owner = tree.detect().owner("web/part/a.py")
    assert owner is not None
    assert owner.folder == "web/"


def test_a_folders_own_file_configures_the_folders_in_it(tree: Tree) -> None:
    for folder in ("web/", "web/gen/", "web/gen/deep/"):
        tree.project(folder)
    tree.write("web/msp-bridge.toml", "[folders.gen]\nadapter = []\n")
    assert found_in(tree) == ["scripted in web/"]
    assert tree.detect().owner("web/gen/a.py") is None
    tree.write("web/msp-bridge.toml", "adapter = []\n")
    with pytest.raises(ConfigurationError, match="no mutation testing tool"):
        tree.opened()


def test_folders_are_relative_to_the_root_wherever_the_file_lies(tree: Tree) -> None:
    for folder in ("web/", "api/"):
        tree.project(folder)
    file = tree.write("conf/msp-bridge.toml", "[folders.web]\nadapter = []\n")
    assert found_in(tree, named=str(file)) == ["scripted in api/"]


def test_a_tool_that_a_folder_asks_for_and_has_not_is_that_folders_fault(tree: Tree) -> None:
    tree.project("")
    tree.write("msp-bridge.toml", "[folders.web]\nadapter = 'scripted'\n")
    (tree.root / "web").mkdir()
    assert found_in(tree) == ["scripted", "msp-bridge in web/"]


def test_a_chosen_tool_may_be_in_any_folder(tree: Tree) -> None:
    tree.project("web/")
    assert found_in(tree, Configuration(adapters=("scripted",))) == ["scripted in web/"]


@pytest.mark.parametrize("options", [None, Configuration(adapters=("scripted",))], ids=["file", "command line"])
def test_a_choice_for_all_keeps_no_file_from_the_tool_around_it(tree: Tree, options: Configuration | None) -> None:
    tree.project("")
    chosen = "" if options else "adapter = 'scripted'\n"
    tree.write("msp-bridge.toml", f"{chosen}[folders.src]\njobs = 1\n")
    tree.write("src/a.py")
    owner = tree.detect(options).owner("src/a.py")
    assert owner is not None
    assert owner.label == "scripted"


def test_a_wrong_configuration_is_a_fault_of_its_folder_alone(tree: Tree) -> None:
    for folder in ("", "web/", "api/"):
        tree.project(folder)
    tree.write("web/msp-bridge.toml", "jobs = 0\n")
    assert found_in(tree) == ["scripted", "scripted in api/", "msp-bridge in web/"]


def test_a_named_configuration_is_that_of_the_project_it_lies_in(tree: Tree) -> None:
    for folder in ("", "web/"):
        tree.project(folder)
    file = tree.write("web/other.json", '{"mutations": []}')
    projects = tree.detect(named=str(file))
    assert (project(projects, "").config_file, project(projects, "web/").config_file) == (None, file)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[folders.gone]\n", "folders.'gone': there is no such folder in {}"),
        ("[folders.'../x']\n", "folders.'../x' names no folder below {}"),
        ("[folders.'/x']\n", "folders.'/x' names no folder below {}"),
        ("[folders.'.']\n", "folders.'.' names no folder below {}"),
        ("folders = 1\n", "folders must be a table, not 1"),
        ("[folders.web]\nx = 1\n", "folders.'web': unknown key 'x'"),
        ("[folders.web.folders.y]\n", "folders.'web' has folders in it: write them as"),
    ],
)
def test_each_mistake_about_folders_is_an_error(tree: Tree, text: str, says: str) -> None:
    tree.project("web/")
    tree.write("msp-bridge.toml", text)
    with pytest.raises(ConfigurationError) as caught:
        tree.detect()
    assert says.format(tree.root) in str(caught.value)


async def test_the_map_is_read_by_all_and_made_once(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[Path] = []

    class Counted(Scripted):
        @classmethod
        def detect(cls, project: Project) -> Self | None:
            looked_at.append(project.root)
            return super().detect(project)

    monkeypatch.setattr("support.scripted.scripted_adapter.Scripted", Counted)
    for folder in ("", "web/"):
        tree.project(folder)
        tree.write(f"{folder}a.py", "1")
    async with tree.open() as workspace:
        assert await paths(workspace) == ["a.py", "web/a.py"]
        assert await statuses(workspace, "web/") == ["web/a.py Killed"]
    assert looked_at == [tree.root, tree.root / "web"]
    looked_at.clear()
    await tree.findings(Configuration(adapters=("scripted",)))
    assert looked_at == [tree.root, tree.root / "web"]


class TestProjectRoot:
    """The root of the project that somebody is in, for a command that names none."""

    def root(self, tree: Tree, start: str = "") -> str:
        (tree.root / start).mkdir(parents=True, exist_ok=True)
        known = {"scripted": installed()["scripted"]}
        return os.path.relpath(project_root(tree.root / start, Configuration(), None, known), tree.root)

    def test_it_is_where_one_is_or_the_nearest_above_where_a_tool_is_set_up(self, tree: Tree) -> None:
        tree.project("")
        tree.project("web/")
        assert [self.root(tree, start) for start in ("", "src/deep", "web", "web/src")] == [".", ".", "web", "web"]

    def test_it_is_where_one_is_when_there_are_projects_below(self, tree: Tree) -> None:
        tree.project("")
        tree.project("services/api/")
        assert self.root(tree, "services") == "services"

    def test_it_is_where_one_is_when_there_is_no_tool_anywhere(self, tree: Tree) -> None:
        assert self.root(tree, "src") == "src"

    def test_a_configuration_of_the_bridge_is_reason_enough(self, tree: Tree) -> None:
        tree.project("")
        tree.write("src/msp-bridge.toml", "adapter = []\n")
        assert self.root(tree, "src") == "src"

    def test_a_mistake_above_is_shown_and_not_passed_over(self, tree: Tree) -> None:
        tree.project("")
        tree.write("msp-bridge.toml", "jobs = 0\n")
        assert self.root(tree, "src") == "."

    def test_it_is_not_the_home_directory(self, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tree.root))
        tree.project("")
        assert self.root(tree, "src") == "src"

    def test_it_is_not_above_the_repository(self, tree: Tree) -> None:
        tree.project("")
        (tree.root / "repo" / ".git").mkdir(parents=True)
        assert self.root(tree, "repo/src") == "repo/src"
        tree.project("repo/")
        assert self.root(tree, "repo/src") == "repo"

    @pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
    def test_it_is_not_another_users_directory(self, tree: Tree) -> None:
        tree.project("")
        (tree.root / "src").mkdir()
        os.chown(tree.root, 12345, -1)
        assert self.root(tree, "src") == "src"

    def test_a_tool_that_is_merely_installed_is_no_reason_to_stay(self, tree: Tree) -> None:
        tree.write("pyproject.toml", "[tool.mutmut]\n")
        (tree.root / "src").mkdir()
        options = Configuration(python=Path(sys.executable))  # mutmut is installed there
        assert project_root(tree.root / "src", options, None, {"mutmut": installed()["mutmut"]}) == tree.root


class TestMerelyInstalled:
    """In an environment with several tools, what nobody has configured has no part beside what somebody has."""

    HERE = Configuration(python=Path(sys.executable))  # with mutmut and with cosmic-ray

    def tools(self, root: Path, options: Configuration = HERE) -> list[str]:
        return [tool.label for tool in Workspace.open(root, options).tools]

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        return Path(shutil.copytree(PROJECTS / "cr_flat", tmp_path / "project"))

    def test_it_gives_way_to_a_tool_for_the_same_files(self, root: Path) -> None:
        assert self.tools(root) == ["cosmic-ray"]
        (root / "cosmic-ray.toml").unlink()
        assert self.tools(root) == ["mutmut"]

    def test_it_is_used_when_it_is_chosen_or_configured(self, root: Path) -> None:
        assert self.tools(root, evolve(self.HERE, adapters=("mutmut", "cosmic-ray"))) == ["mutmut", "cosmic-ray"]
        assert self.tools(root, evolve(self.HERE, adapters=("mutmut",))) == ["mutmut"]
        (root / "setup.cfg").write_text("[mutmut]\nsource_paths = calc\n")
        assert self.tools(root) == ["cosmic-ray", "mutmut"]

    def test_it_is_no_rival_of_a_tool_for_other_files(self, root: Path) -> None:
        (root / "cosmic-ray.toml").unlink()
        (root / "stryker.config.json").write_text("{}")
        assert self.tools(root) == ["mutmut", "stryker-js"]

    async def test_it_gives_way_at_the_root_to_projects_below_that_have_all_its_files(self, tmp_path: Path) -> None:
        root = tmp_path / "repository"
        for folder in ("one", "two"):
            shutil.copytree(PROJECTS / "cr_flat", root / folder)
            (root / folder / "manage.py").touch()
        assert self.tools(root) == ["cosmic-ray in one/", "cosmic-ray in two/"]
        async with contextlib.aclosing(diagnose(root, self.HERE, None)) as findings:
            found = {finding.subject: finding async for finding in findings}
        text = "not used: nothing here configures it, and its files belong to cosmic-ray in one/, cosmic-ray in two/"
        assert (found["mutmut"].good, found["mutmut"].text) == (True, text)
        (root / "shared.py").touch()
        assert self.tools(root) == ["mutmut", "cosmic-ray in one/", "cosmic-ray in two/"]

    async def test_where_nothing_of_it_is_in_the_project_it_gives_way_to_any_configured_tool(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("VIRTUAL_ENV", raising=False)
        (root / "cosmic-ray.toml").rename(root / "build.txt")
        assert self.tools(root, Configuration()) == ["mutmut"]
        (root / "web").mkdir()
        (root / "web" / "stryker.config.json").write_text("{}")
        assert self.tools(root, Configuration()) == ["stryker-js in web/"]
        assert self.tools(root) == ["mutmut", "stryker-js in web/"]  # its interpreter is chosen
        (root / "pyproject.toml").touch()
        assert self.tools(root, Configuration()) == ["mutmut", "stryker-js in web/"]

    def test_packages_that_are_configured_leave_nothing_to_the_root_of_their_workspace(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            package = tmp_path / "packages" / name
            (package / "src").mkdir(parents=True)
            (package / "src" / "add.js").touch()
            (package / "stryker.config.json").write_text("{}")
        asks = '{"workspaces": ["packages/*"], "devDependencies": {"@stryker-mutator/core": "*"}}'
        (tmp_path / "package.json").write_text(asks)
        (tmp_path / "eslint.config.js").touch()
        parts = ["stryker-js in packages/a/", "stryker-js in packages/b/"]
        assert self.tools(tmp_path) == parts
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib" / "shared.js").touch()
        assert self.tools(tmp_path) == ["stryker-js", *parts]

    async def test_doctor_names_the_configured_tool(self, root: Path) -> None:
        async with contextlib.aclosing(diagnose(root, self.HERE, None)) as findings:
            found = {finding.subject: finding async for finding in findings}
        assert found["mutmut"].good
        assert found["mutmut"].text == "not used: nothing here configures it, and its files belong to cosmic-ray"


def test_a_broken_plugin_keeps_no_other_from_working(tree: Tree, caplog: pytest.LogCaptureFixture) -> None:
    tree.project("")
    assert [tool.label for tool in Workspace.of(tree.detect(broken=broken_plugin())).tools] == ["scripted"]
    assert "the adapter broken" in caplog.text
    with pytest.raises(BridgeError, match="the adapter broken"):
        Workspace.of(tree.detect(Configuration(adapters=("broken", "scripted")), broken=broken_plugin()))


def broken_plugin() -> EntryPoint:
    return EntryPoint("broken", "no_such_module:Adapter")


def of_root(*names: str, **more: Any) -> ProjectMap:
    return ProjectMap(Path("/"), (ProjectFolder(""),), Configuration(adapters=names or None), **more)


BROKEN = ConfigurationError("the plugin is broken")


@pytest.mark.parametrize(
    ("projects", "problem", "remedy"),
    [
        (
            of_root(),
            "no mutation testing tool is set up in / (looked for: none)",
            "`msp-bridge doctor` says what each of them needs",
        ),
        (of_root("gone"), "gone is not set up in /", SEE_DOCTOR),
        (of_root("gone", broken={"plugin": BROKEN}), "gone is not set up in /", SEE_DOCTOR),
        (of_root("plugin", broken={"plugin": BROKEN}), "the plugin is broken", BROKEN.remedy),
        (of_root(broken={"plugin": BROKEN}), "the plugin is broken", BROKEN.remedy),
    ],
)
def test_what_is_wrong_with_the_root_is_said(projects: ProjectMap, problem: str, remedy: str | None) -> None:
    with pytest.raises(ConfigurationError) as caught:
        projects.check()
    assert (caught.value.problem, caught.value.remedy) == (problem, remedy)
