"""Several projects in one tree: where they are found, whose a file is, who does which part, and who pays for a fault."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
from collections.abc import AsyncGenerator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from msp_bridge.adapter import Adapter, Finding, Scope
from msp_bridge.concurrency import merge_streams
from msp_bridge.errors import BridgeError, ConfigurationError, PartlyFailed, ToolError
from msp_bridge.model import Location, Position
from msp_bridge.workspace.adapters import installed
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.diagnosis import diagnose
from msp_bridge.workspace.folders import folders_with
from msp_bridge.workspace.router import Router
from msp_bridge.workspace.selection import KnownMutant, Selection, Target
from msp_bridge.workspace.shares import Shares
from msp_bridge.workspace.survey import Survey
from msp_bridge.workspace.workspace import Workspace

PROJECTS = Path(__file__).parent / "projects"
DIGIT = {"mutator": "digit", "find": "1", "replacement": "2"}


class Tree:
    """A workspace whose projects have scripted tools, all called `scripted`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str = "") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def project(self, folder: str, *mutations: dict[str, Any], **entries: Any) -> None:
        self.write(f"{folder}scripted.json", json.dumps({"mutations": mutations or [DIGIT], **entries}))

    def survey(self, options: Configuration | None = None, named: str | None = None) -> Survey:
        only = {"scripted": installed()["scripted"]}
        return Survey(self.root, options or Configuration(), named, only)

    @contextlib.asynccontextmanager
    async def open(self, options: Configuration | None = None, named: str | None = None) -> Any:
        survey = self.survey(options, named)
        workspace = Workspace(self.root, survey.places(), survey.shares, survey.folders)
        async with contextlib.aclosing(workspace):
            yield workspace


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    return Tree(tmp_path / "tree")


async def paths(workspace: Workspace, *targets: str) -> list[str]:
    selection = Selection(targets=tuple(map(Target, targets))) if targets else Selection()
    async with contextlib.aclosing(workspace.discover(selection)) as mutants:
        return sorted([mutant.path async for mutant in mutants])


async def statuses(workspace: Workspace, *targets: str) -> list[str]:
    selection = Selection(targets=tuple(map(Target, targets))) if targets else Selection()
    async with contextlib.aclosing(workspace.test(selection)) as results:
        return sorted([f"{result.mutant.path} {result.status.value}" async for result in results])


class TestFolders:
    """Where there may be projects."""

    def test_the_nearest_come_first_and_the_root_is_not_among_them(self, tree: Tree) -> None:
        for path in ("x.json", "a/b/x.json", "c/x.json", "c/y.json", "d/y.toml"):
            tree.write(path)
        assert list(folders_with(str(tree.root), ["x.json"])) == ["c/", "a/b/"]
        assert list(folders_with(str(tree.root), ["*.toml", "y.*"])) == ["c/", "d/"]
        assert list(folders_with(str(tree.root), [])) == []

    def test_what_is_generated_or_hidden_or_an_environment_is_not_looked_into(self, tree: Tree) -> None:
        for folder in ("node_modules/p", ".git", "web/dist", "web/.cache", "env", "cache", "target/x"):
            tree.write(f"{folder}/x.json")
        tree.write("env/pyvenv.cfg")
        tree.write("cache/CACHEDIR.TAG")
        assert list(folders_with(str(tree.root), ["x.json"])) == []

    def test_links_to_directories_are_not_followed(self, tree: Tree) -> None:
        tree.write("a/x.json")
        os.symlink(tree.root, tree.root / "a" / "loop")
        assert list(folders_with(str(tree.root), ["x.json"])) == ["a/"]

    def test_a_tree_that_is_too_large_is_searched_no_further(
        self, tree: Tree, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr("msp_bridge.workspace.folders.MAX_LOOKS", 3)
        for folder in "abcd":
            tree.write(f"{folder}/x.json")
        assert list(folders_with(str(tree.root), ["x.json"])) == ["a/", "b/"]
        assert "open the folder of a project" in caplog.text


class TestSurvey:
    """Which tools are set up, and where."""

    def found(self, tree: Tree, options: Configuration | None = None, named: str | None = None) -> list[str]:
        return [tool.label for tool in Router(tree.survey(options, named).places()).tools]

    def test_each_folder_with_a_tool_is_a_project(self, tree: Tree) -> None:
        for folder in ("", "web/", "services/api/"):
            tree.project(folder)
        assert self.found(tree) == ["scripted", "scripted in web/", "scripted in services/api/"]

    def test_a_project_is_told_what_is_its_own(self, tree: Tree) -> None:
        tree.project("web/")
        tree.write("msp-bridge.toml", "jobs = 5\n[folders.web]\njobs = 2\nscripted = {a = 1}\n")
        survey = tree.survey()
        ((_, project),) = survey.projects("web/")
        assert (project.root, project.nested, project.settings) == (tree.root / "web", True, {"a": 1})
        assert project.jobs == 2
        ((_, project),) = survey.projects("")
        assert (project.root, project.nested, project.settings, project.jobs) == (tree.root, False, {}, 5)

    def test_the_cache_of_a_project_never_lies_in_the_tree_around_it(
        self, tree: Tree, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tree.project("web/")
        monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tree.root / "cache"))
        ((_, project),) = tree.survey().projects("web/")
        assert not project.cache.is_relative_to(tree.root)

    def test_a_folder_can_be_switched_off_with_all_that_is_in_it(self, tree: Tree) -> None:
        for folder in ("", "examples/one/", "web/"):
            tree.project(folder)
        tree.write("msp-bridge.toml", "[folders.examples]\nadapter = []\n")
        assert self.found(tree) == ["scripted", "scripted in web/"]

    def test_the_root_can_be_switched_off_alone(self, tree: Tree) -> None:
        for folder in ("", "web/"):
            tree.project(folder)
        tree.write("msp-bridge.toml", "adapter = []\n[folders.web]\nadapter = 'scripted'\n")
        assert self.found(tree) == ["scripted in web/"]

    def test_a_folders_own_file_goes_before_what_is_said_around_it(self, tree: Tree) -> None:
        tree.project("web/")
        tree.write("msp-bridge.toml", "[folders.web]\nadapter = []\njobs = 3\n")
        tree.write("web/msp-bridge.toml", "adapter = 'scripted'\n")
        assert self.found(tree) == ["scripted in web/"]

    def test_what_is_chosen_for_a_folder_takes_nothing_from_it_in_the_folders_below(self, tree: Tree) -> None:
        tree.project("web/")
        tree.write("web/part/scripted.txt")
        tree.project("web/part/", files="*.js")
        tree.write("web/part/a.py", "1")
        tree.write("msp-bridge.toml", "[folders.web]\nadapter = 'scripted'\n[folders.'web/part']\njobs = 1\n")
        assert self.found(tree) == ["scripted in web/", "scripted in web/part/"]
        owner = Router(tree.survey().places()).owner("web/part/a.py")
        assert owner is not None
        assert owner.folder == "web/"

    def test_a_folders_own_file_speaks_of_those_in_it_as_when_it_is_opened_alone(self, tree: Tree) -> None:
        for folder in ("web/", "web/gen/", "web/gen/deep/"):
            tree.project(folder)
        tree.write("web/msp-bridge.toml", "[folders.gen]\nadapter = []\n")
        assert self.found(tree) == ["scripted in web/"]
        assert Router(tree.survey().places()).owner("web/gen/a.py") is None
        tree.write("web/msp-bridge.toml", "adapter = []\n")
        with pytest.raises(ConfigurationError, match="no mutation testing tool"):
            tree.survey().places()

    def test_folders_are_relative_to_the_root_wherever_the_file_lies(self, tree: Tree) -> None:
        for folder in ("web/", "api/"):
            tree.project(folder)
        file = tree.write("conf/msp-bridge.toml", "[folders.web]\nadapter = []\n")
        assert self.found(tree, named=str(file)) == ["scripted in api/"]

    def test_a_tool_that_a_folder_asks_for_and_has_not_is_that_folders_fault(self, tree: Tree) -> None:
        tree.project("")
        tree.write("msp-bridge.toml", "[folders.web]\nadapter = 'scripted'\n")
        (tree.root / "web").mkdir()
        assert self.found(tree) == ["scripted", "msp-bridge in web/"]

    def test_what_is_asked_for_by_name_may_be_in_any_folder(self, tree: Tree) -> None:
        tree.project("web/")
        assert self.found(tree, Configuration(adapters=("scripted",))) == ["scripted in web/"]

    @pytest.mark.parametrize("options", [None, Configuration(adapters=("scripted",))], ids=["file", "command line"])
    def test_a_choice_for_all_keeps_no_file_from_the_tool_around_it(
        self, tree: Tree, options: Configuration | None
    ) -> None:
        tree.project("")
        chosen = "" if options else "adapter = 'scripted'\n"
        tree.write("msp-bridge.toml", f"{chosen}[folders.src]\njobs = 1\n")
        tree.write("src/a.py")
        owner = Router(tree.survey(options).places()).owner("src/a.py")
        assert owner is not None
        assert owner.label == "scripted"

    def test_a_wrong_configuration_is_a_fault_of_its_folder_alone(self, tree: Tree) -> None:
        for folder in ("", "web/", "api/"):
            tree.project(folder)
        tree.write("web/msp-bridge.toml", "jobs = 0\n")
        assert self.found(tree) == ["scripted", "scripted in api/", "msp-bridge in web/"]

    def test_a_named_configuration_is_that_of_the_project_it_lies_in(self, tree: Tree) -> None:
        for folder in ("", "web/"):
            tree.project(folder)
        file = tree.write("web/other.json", '{"mutations": []}')
        survey = tree.survey(named=str(file))
        ((_, root),), ((_, web),) = survey.projects(""), survey.projects("web/")
        assert (root.config_file, web.config_file) == (None, file)

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("[folders.gone]\n", "folders.'gone': there is no such folder in {}"),
            ("[folders.'../x']\n", "folders.'../x': name a folder below {}"),
            ("[folders.'/x']\n", "folders.'/x': name a folder below {}"),
            ("[folders.'.']\n", "folders.'.': name a folder below {}"),
            ("folders = 1\n", "folders must be a table, not 1"),
            ("[folders.web]\nx = 1\n", "folders.'web': unknown key 'x'"),
            ("[folders.web.folders.y]\n", "folders.'web': write the folders in it as"),
        ],
    )
    def test_each_mistake_about_folders_is_told(self, tree: Tree, text: str, says: str) -> None:
        tree.project("web/")
        tree.write("msp-bridge.toml", text)
        with pytest.raises(ConfigurationError) as caught:
            tree.survey()
        assert says.format(tree.root) in str(caught.value)


class TestRouting:
    """Whose a file is, and who is asked."""

    async def test_every_project_gives_its_mutants_with_the_paths_of_the_tree(self, tree: Tree) -> None:
        for folder in ("", "web/", "services/api/"):
            tree.project(folder)
            tree.write(f"{folder}a.py", "1")
        async with tree.open() as workspace:
            assert await paths(workspace) == ["a.py", "services/api/a.py", "web/a.py"]
            assert await statuses(workspace) == ["a.py Killed", "services/api/a.py Killed", "web/a.py Killed"]

    async def test_the_nearest_project_that_claims_a_file_has_it(self, tree: Tree) -> None:
        tree.project("", {**DIGIT, "mutator": "root"}, files="*")
        tree.project("web/", {**DIGIT, "mutator": "web"}, files="*.js")
        tree.write("web/a.js", "1")
        tree.write("web/a.py", "1")
        async with tree.open() as workspace:
            async with contextlib.aclosing(workspace.discover(Selection())) as mutants:
                found = sorted([(mutant.path, mutant.mutator) async for mutant in mutants])
        assert found == [("web/a.js", "web"), ("web/a.py", "root")]

    async def test_a_folder_whose_tools_were_chosen_gives_nothing_to_those_around_it(self, tree: Tree) -> None:
        tree.project("", files="*")
        tree.project("web/", files="*.js")
        tree.write("web/a.py", "1")
        tree.write("msp-bridge.toml", "[folders.web]\nadapter = 'scripted'\n")
        async with tree.open() as workspace:
            assert await paths(workspace) == []
            assert await paths(workspace, "web/") == []

    async def test_files_directories_and_mutants_go_to_those_they_belong_to(self, tree: Tree) -> None:
        for folder in ("", "web/", "services/api/"):
            tree.project(folder)
            tree.write(f"{folder}a.py", "1")
            tree.write(f"{folder}b.py", "1")
        async with tree.open() as workspace:
            assert await paths(workspace, "web/a.py", "b.py") == ["b.py", "web/a.py"]
            assert await paths(workspace, "services/") == ["services/api/a.py", "services/api/b.py"]
            assert await paths(workspace, "services/api") == ["services/api/a.py", "services/api/b.py"]
            assert await paths(workspace, str(tree.root / "web")) == ["web/a.py", "web/b.py"]
            assert len(await paths(workspace, str(tree.root))) == 6
            async with contextlib.aclosing(workspace.discover(Selection())) as mutants:
                known = [
                    KnownMutant(mutant.path, mutant.location, mutant.mutator, mutant.replacement)
                    async for mutant in mutants
                    if mutant.path in ("a.py", "web/b.py")
                ]
            async with contextlib.aclosing(workspace.test(Selection(mutants=tuple(known)))) as results:
                assert sorted([result.mutant.path async for result in results]) == ["a.py", "web/b.py"]

    def test_a_tool_that_has_nothing_to_do_with_a_request_is_not_asked(self, tree: Tree) -> None:
        for folder in ("", "web/", "api/"):
            tree.project(folder)
        router = Router(tree.survey().places())

        def asked(*paths: str) -> list[tuple[str, bool]]:
            return [(part.tool.folder, part.named) for part in router.parts(Scope(frozenset(paths)))]

        assert asked("web/a.py") == [("web/", True)]
        assert asked("web/a.js") == []
        assert asked("a.py", "api/b.py") == [("", True), ("api/", True)]
        assert asked("web/src/") == [("", False), ("web/", True)]
        assert asked("/") == [("", False), ("api/", False), ("web/", False)]

    async def test_an_id_is_that_of_the_path_in_the_tree(self, tree: Tree) -> None:
        for folder in ("api/", "web/"):
            tree.project(folder)
            tree.write(f"{folder}a.py", "1")
        async with tree.open() as workspace:
            async with contextlib.aclosing(workspace.discover(Selection())) as mutants:
                ids = {mutant.id async for mutant in mutants}
            async with contextlib.aclosing(workspace.test(Selection())) as results:
                assert {result.mutant.id async for result in results} == ids
        assert len(ids) == 2


class TestFaults:
    """One broken project never breaks the others."""

    @pytest.fixture
    def broken(self, tree: Tree) -> Tree:
        for folder in ("api/", "web/"):
            tree.project(folder)
            tree.write(f"{folder}a.py", "1")
        tree.project("web/", discovery={"raises": ["ToolError", "no such thing; install it"]})
        return tree

    async def test_the_others_do_their_part_and_then_the_fault_is_told(self, broken: Tree) -> None:
        async with broken.open() as workspace:
            async with contextlib.aclosing(workspace.test(Selection())) as results:
                assert (await anext(results)).mutant.path == "api/a.py"
                with pytest.raises(PartlyFailed, match=r"^scripted in web/: no such thing; install it$"):
                    await anext(results)

    async def test_who_asked_for_it_by_name_is_told_the_fault(self, broken: Tree) -> None:
        async with broken.open() as workspace:
            for target in ("web/a.py", "web/"):
                with pytest.raises(BridgeError, match="no such thing") as caught:
                    await statuses(workspace, target)
                assert not isinstance(caught.value, PartlyFailed)

    async def test_who_asked_for_others_too_gets_theirs(self, broken: Tree) -> None:
        async with broken.open() as workspace:
            for targets in (("web/", "api/"), ("web/a.py", "api/a.py")):
                with pytest.raises(PartlyFailed, match="no such thing"):
                    await statuses(workspace, *targets)

    async def test_mutants_that_could_not_be_tested_say_why(self, broken: Tree) -> None:
        broken.project("web/", testing={"raises": ["ToolError", "its tests fail; mend them"]})
        async with broken.open() as workspace:
            async with contextlib.aclosing(workspace.test(Selection())) as results:
                two = [await anext(results), await anext(results)]
                with pytest.raises(PartlyFailed, match="its tests fail"):
                    await anext(results)
        assert {(result.mutant.path, result.status.value, result.status_reason) for result in two} == {
            ("api/a.py", "Killed", None),
            ("web/a.py", "Ignored", "not tested: its tests fail; mend them"),
        }

    @pytest.mark.parametrize(
        ("raises", "reason"),
        [
            (["ToolError", "no such thing; install it"], "no such thing; install it"),
            (
                ["RuntimeError", "x"],
                "RuntimeError('x'): that is a fault of the adapter; please report it, with the log",
            ),
        ],
    )
    @pytest.mark.parametrize("phase", ["discovery", "testing"])
    async def test_mutants_that_the_client_knows_have_a_result_also_when_they_can_not_be_found_again(
        self, broken: Tree, phase: str, raises: list[str], reason: str
    ) -> None:
        broken.project("web/")
        async with broken.open() as workspace:
            async with contextlib.aclosing(workspace.discover(Selection())) as mutants:
                ids = {mutant.path: mutant.id async for mutant in mutants}
            broken.project("web/", **{phase: {"raises": raises}})
            one = Location(Position(1, 1), Position(1, 2))
            known = [KnownMutant(path, one, "digit", "2") for path in ("api/a.py", "web/a.py", "web/a.py", "none.txt")]
            untold = KnownMutant("web/a.py", one, "digit", None)  # its id can't be told
            async with contextlib.aclosing(workspace.test(Selection(mutants=(*known, untold)))) as results:
                two = [await anext(results), await anext(results)]
                with pytest.raises(PartlyFailed) as caught:
                    await anext(results)
        assert str(caught.value) == f"scripted in web/: {reason}"
        assert {(result.mutant.id, result.status.value, result.status_reason) for result in two} == {
            (ids["api/a.py"], "Killed", None),
            (ids["web/a.py"], "Ignored", f"not tested: {reason}"),
        }

    async def test_a_request_to_the_others_knows_nothing_of_it(self, broken: Tree) -> None:
        async with broken.open() as workspace:
            assert await statuses(workspace, "api/") == ["api/a.py Killed"]

    async def test_when_all_fail_it_is_no_partial_failure(self, broken: Tree) -> None:
        broken.project("api/", testing={"raises": ["ToolError", "nor that"]})
        async with broken.open() as workspace:
            with pytest.raises(BridgeError, match="scripted in api/: nor that; scripted in web/: no such") as caught:
                await statuses(workspace)
            assert not isinstance(caught.value, PartlyFailed)

    async def test_a_fault_of_an_adapter_costs_no_other_its_results(
        self, broken: Tree, caplog: pytest.LogCaptureFixture
    ) -> None:
        broken.project("web/", testing={"raises": ["RuntimeError", "our own mistake"]})
        async with broken.open() as workspace:
            with pytest.raises(PartlyFailed, match=r"our own mistake.*is a fault of the adapter; please report it"):
                await statuses(workspace)
        assert "Traceback" in caplog.text

    async def test_a_wrong_configuration_is_told_to_who_asks_for_that_folder(self, broken: Tree) -> None:
        broken.write("web/msp-bridge.toml", "jobs = 0\n")
        async with broken.open() as workspace:
            assert await paths(workspace, "api/a.py") == ["api/a.py"]
            with pytest.raises(BridgeError, match=r"msp-bridge\.toml: jobs must be a whole number"):
                await paths(workspace, "web/a.py")

    async def test_doctor_shows_each_folder_and_a_fault_hides_nothing(self, broken: Tree) -> None:
        broken.write("web/msp-bridge.toml", "jobs = 0\n")
        options = Configuration(adapters=("scripted",))
        async with contextlib.aclosing(diagnose(broken.root, options, None)) as findings:
            found = [(finding.good, finding.subject) async for finding in findings]
        assert found == [
            (True, "project"),
            (True, "msp-bridge"),
            (True, "project"),
            (True, "script"),
            (True, "project"),
            (False, "msp-bridge"),
        ]


class TestDoctor:
    """What `msp-bridge doctor` says of it."""

    async def found(self, tree: Tree, options: Configuration | None = None) -> list[tuple[bool, str, str]]:
        async with contextlib.aclosing(diagnose(tree.root, options or Configuration(), None)) as findings:
            return [(finding.good, finding.subject, finding.text) async for finding in findings]

    async def test_a_folder_whose_chosen_tool_is_missing_is_shown(self, tree: Tree) -> None:
        tree.project("api/")
        (tree.root / "web").mkdir()
        tree.write("msp-bridge.toml", "adapter = 'scripted'\n[folders.web]\nadapter = 'scripted'\n")
        found = await self.found(tree)
        assert (True, "project", str(tree.root / "web/")) in found
        assert (False, "scripted", f"there is no scripted.json in {tree.root / 'web'}") in found

    async def test_without_a_tool_those_come_first_that_fit_what_is_here(self, tree: Tree) -> None:
        no_tool = tree.root / ".venv/bin/python"
        tree.write(".venv/pyvenv.cfg", "")
        tree.write(".venv/bin/python", "")
        no_tool.chmod(0o755)
        for name in ("a/b.py", "a/c.py", "d.py", "build.rs", "node_modules/x/Many.cs", "node_modules/x/More.cs"):
            tree.write(name, "")
        assert [(good, subject) for good, subject, _ in await self.found(tree)] == [
            (True, "project"),
            (True, "msp-bridge"),
            (False, "tools"),
            (False, "cosmic-ray"),
            (False, "mutmut"),
            (False, "cargo-mutants"),
            (False, "scripted"),
            (True, "generic"),
            (True, "others"),
        ]
        assert (await self.found(tree))[-1][2] == "there are no files here for stryker-js, stryker-net"
        tree.write("Cart.cs", "")
        assert [subject for _, subject, _ in await self.found(tree)][5:7] == ["cargo-mutants", "stryker-net"]
        tree.write("cart.js", "")
        assert (True, "generic") in [(good, subject) for good, subject, _ in await self.found(tree)]

    async def test_a_tool_that_was_chosen_is_shown_also_when_nothing_here_is_for_it(self, tree: Tree) -> None:
        tree.write("a.py", "")
        found = await self.found(tree, Configuration(adapters=("stryker-net",)))
        assert [(good, subject) for good, subject, _ in found[2:]] == [(False, "stryker-net")]

    async def test_where_nothing_is_for_any_tool_all_are_shown(self, tree: Tree) -> None:
        found = await self.found(tree)
        assert {"mutmut", "cosmic-ray", "stryker-net", "cargo-mutants"} < {subject for _, subject, _ in found}

    async def test_all_tools_switched_off_is_no_good(self, tree: Tree) -> None:
        tree.project("")
        tree.write("msp-bridge.toml", "adapter = []\n")
        assert (False, "msp-bridge", "`adapter` is empty: no tool is used") in await self.found(tree)

    async def test_options_are_not_taken_for_a_file_that_says_nothing(self, tree: Tree) -> None:
        tree.project("")
        tree.write("pyproject.toml", "[project]\nname = 'x'\n")
        found = await self.found(tree, Configuration(adapters=("scripted",)))
        assert (True, "msp-bridge", "configuration of the command line") in found

    @pytest.mark.parametrize(
        ("text", "remedy"),
        [
            ("it failed: no such thing; `msp-bridge doctor` looks for the cause", None),
            ("it failed: no such thing: run `msp-bridge doctor`", None),
            ("it failed: no such thing, or run `msp-bridge doctor`", None),
            ("it failed: no such thing", "msp-bridge doctor"),
        ],
    )
    async def test_who_is_here_is_not_sent_here(
        self, text: str, remedy: str | None, tree: Tree, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def fails(_: Adapter) -> AsyncGenerator[Finding, None]:
            if remedy is None:
                raise ToolError(text)
            yield Finding(False, "scripted", text, remedy)

        tree.project("")
        monkeypatch.setattr(installed()["scripted"].load(), "diagnose", fails)
        async with contextlib.aclosing(diagnose(tree.root, Configuration(adapters=("scripted",)), None)) as findings:
            *_, last = [finding async for finding in findings]
        assert last == Finding(False, "scripted", "it failed: no such thing")


class TestMisplaced:
    """A table of a tool that is about the root, when that tool is elsewhere."""

    ABOUT = "is about the root, where scripted isn't set up"

    async def told(self, tree: Tree, caplog: pytest.LogCaptureFixture, named: str | None = None) -> str:
        """What the log says in one warning, and `msp-bridge doctor` as a fault with a remedy."""
        caplog.clear()
        tree.survey(named=named).places()
        (warning,) = caplog.messages
        async with contextlib.aclosing(diagnose(tree.root, Configuration(), named)) as findings:
            (wrong,) = [finding async for finding in findings if self.ABOUT in finding.text]
        assert (wrong.good, warning) == (False, f"{wrong.text}: {wrong.remedy}")
        return warning

    async def test_it_is_told_where_to_write_it(self, tree: Tree, caplog: pytest.LogCaptureFixture) -> None:
        tree.project("web/")
        tree.write("msp-bridge.toml", "[scripted]\na = 1\n")
        assert await self.told(tree, caplog) == (
            f'`[scripted]` {self.ABOUT}: write [folders."web".scripted], or [scripted] in web/msp-bridge.toml'
        )
        for folder in ("api/", "services/mail/", "services/shop/"):
            tree.project(folder)
        assert await self.told(tree, caplog) == (
            f'`[scripted]` {self.ABOUT}: write [folders."api".scripted], [folders."web".scripted], '
            '[folders."services/mail".scripted], and so on for 1 more, or [scripted] in the msp-bridge.toml of each'
        )

    async def test_it_is_called_what_it_is_called_in_its_file(
        self, tree: Tree, caplog: pytest.LogCaptureFixture
    ) -> None:
        tree.project("web/")
        file = tree.write("pyproject.toml", "[tool.msp-bridge.scripted]\na = 1\n")
        for named in (None, str(file), str(tree.root / "web/scripted.json")):
            assert 'write [tool.msp-bridge.folders."web".scripted], or' in await self.told(tree, caplog, named)
        tree.write("msp-bridge.toml", "[scripted]\na = 1\n")
        assert 'write [folders."web".scripted], or' in await self.told(tree, caplog)

    @pytest.mark.parametrize("text", ["[folders.web.scripted]\na = 1\n", "[scripted]\na = 1\n"])
    def test_what_is_in_its_place_is_not_told(self, text: str, tree: Tree, caplog: pytest.LogCaptureFixture) -> None:
        for folder in ("web/", "") if text.startswith("[scripted]") else ("web/",):
            tree.project(folder)
        tree.write("msp-bridge.toml", text)
        tree.survey().places()
        assert caplog.messages == []

    @pytest.mark.parametrize("in_folder", [True, False])
    async def test_one_that_each_folder_has_for_itself_is_to_be_removed(
        self, in_folder: bool, tree: Tree, caplog: pytest.LogCaptureFixture
    ) -> None:
        tree.project("web/")
        own = '[folders."web".scripted]\na = 2\n'
        tree.write("msp-bridge.toml", "[scripted]\na = 1\n" + ("" if in_folder else own))
        if in_folder:
            tree.write("web/msp-bridge.toml", "[scripted]\na = 2\n")
        assert await self.told(tree, caplog) == (
            f"`[scripted]` {self.ABOUT}: remove the table: where scripted is set up there are others"
        )

    @pytest.mark.parametrize("broken", ["nonsense = 1\n", "python = 'none'\n", 'python = "a\\u0000b"\n'])
    async def test_nothing_is_told_while_the_tool_may_be_in_a_folder_that_is_broken(
        self, broken: str, tree: Tree, caplog: pytest.LogCaptureFixture
    ) -> None:
        tree.project("web/")
        tree.write("msp-bridge.toml", "[scripted]\na = 1\n")
        tree.write("web/msp-bridge.toml", broken)
        tree.survey().places()
        assert caplog.messages == []
        async with contextlib.aclosing(diagnose(tree.root, Configuration(), None)) as findings:
            told = [finding.text async for finding in findings if not finding.good]
        assert not any(self.ABOUT in text for text in told)
        assert any("nonsense" in text or "interpreter" in text for text in told)

    async def test_a_tool_that_is_nowhere_is_to_be_set_up(self, tree: Tree, caplog: pytest.LogCaptureFixture) -> None:
        tree.project("")
        tree.write("msp-bridge.toml", "[stryker-js]\nwarm = 1\n")
        known = {name: installed()[name] for name in ("scripted", "stryker-js")}
        Survey(tree.root, Configuration(), None, known).places()
        (warning,) = caplog.messages
        assert warning == (
            "`[stryker-js]` is about the root, where stryker-js isn't set up, nor in any folder: "
            "set it up, or remove the table"
        )


class TestShares:
    """One bound on what runs at once."""

    def test_one_tool_has_all_and_several_divide_them(self) -> None:
        shares = Shares(5)
        assert shares.of("a") == 5
        with shares.party("a"):
            assert shares.of("a") == 5
            with shares.party("b"):
                assert (shares.of("a"), shares.of("b")) == (3, 2)
            assert shares.of("a") == 5

    def test_every_tool_has_one_at_least(self) -> None:
        shares = Shares(1)
        with shares.party("a"), shares.party("b"):
            assert (shares.of("a"), shares.of("b")) == (1, 1)

    def test_two_requests_to_one_tool_are_one_party(self) -> None:
        shares = Shares(4)
        with shares.party("a"), shares.party("a"), shares.party("b"):
            assert (shares.of("a"), shares.of("b")) == (2, 2)

    def test_who_waits_leaves_its_share_to_the_others(self) -> None:
        shares = Shares(4)
        with shares.party("a"), shares.party("b"):
            with shares.without("a"):
                assert shares.of("b") == 4
            assert shares.of("b") == 2

    async def test_projects_that_run_side_by_side_are_told_their_share(self, tree: Tree) -> None:
        seen = []
        for folder in ("api/", "web/"):
            tree.project(folder, {**DIGIT, "after": "go"}, events=str(tree.root))
            tree.write(f"{folder}a.py", "1")
        async with tree.open(Configuration(jobs=4)) as workspace:
            projects = [tool.adapter._project for tool in workspace.tools]
            assert [project.jobs for project in projects] == [4, 4]
            running = asyncio.create_task(statuses(workspace))
            while (tree.root / "log").exists() is False or (tree.root / "log").read_text().count("waiting") < 2:
                await asyncio.sleep(0.01)
            seen = [project.jobs for project in projects]
            (tree.root / "go").touch()
            assert len(await running) == 2
        assert seen == [2, 2]


class TestSideBySide:
    """Several generators as one."""

    async def test_whoever_has_something_goes_next(self) -> None:
        gates = {name: asyncio.Event() for name in "ab"}

        async def source(name: str) -> AsyncGenerator[str, None]:
            await gates[name].wait()
            for number in range(2):
                yield f"{name}{number}"

        async with contextlib.aclosing(merge_streams([source("a"), source("b")])) as merged:
            gates["b"].set()
            assert [await anext(merged), await anext(merged)] == ["b0", "b1"]
            gates["a"].set()
            assert [item async for item in merged] == ["a0", "a1"]

    async def test_no_more_is_asked_than_one_ahead_of_what_is_taken(self) -> None:
        asked: list[str] = []

        async def source(name: str) -> AsyncGenerator[str, None]:
            for number in range(10):
                asked.append(f"{name}{number}")
                yield name

        async with contextlib.aclosing(merge_streams([source("a"), source("b")])) as merged:
            await anext(merged)
            for _ in range(5):
                await asyncio.sleep(0)
            assert sorted(asked) == ["a0", "b0"]

    async def test_closing_closes_all_and_waits_for_them(self) -> None:
        closed: list[str] = []

        async def source(name: str) -> AsyncGenerator[str, None]:
            try:
                yield name
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                closed.append(name)

        async with contextlib.aclosing(merge_streams([source("a"), source("b")])) as merged:
            await anext(merged)
        assert sorted(closed) == ["a", "b"]

    async def test_an_error_of_one_is_raised_and_the_others_are_closed(self) -> None:
        closed: list[str] = []

        async def failing() -> AsyncGenerator[str, None]:
            await asyncio.sleep(0)
            raise LookupError("lost")
            yield ""

        async def waiting() -> AsyncGenerator[str, None]:
            try:
                await asyncio.Event().wait()
                yield ""
            finally:
                closed.append("waiting")

        async with contextlib.aclosing(merge_streams([failing(), waiting()])) as merged:
            with pytest.raises(LookupError):
                await anext(merged)
        assert closed == ["waiting"]

    async def test_a_cancel_while_one_ends_leaves_no_other_open(self) -> None:
        closed: list[str] = []
        ending, may_end = asyncio.Event(), asyncio.Event()

        async def paused() -> AsyncGenerator[str, None]:
            try:
                yield "taken"
                yield "never asked for"
            finally:
                closed.append("paused")

        async def slow_to_end() -> AsyncGenerator[str, None]:
            try:
                await asyncio.Event().wait()
                yield ""
            finally:
                ending.set()
                await may_end.wait()
                closed.append("slow to end")

        async def one_is_enough() -> None:
            async with contextlib.aclosing(merge_streams([paused(), slow_to_end()])) as merged:
                await anext(merged)

        task = asyncio.create_task(one_is_enough())
        await ending.wait()
        task.cancel()
        may_end.set()
        await asyncio.wait([task])
        assert task.cancelled()
        assert sorted(closed) == ["paused", "slow to end"]

    async def test_none_at_all_is_at_its_end(self) -> None:
        async with contextlib.aclosing(merge_streams([])) as merged:
            assert [item async for item in merged] == []


class TestMerelyInstalled:
    """In an environment with several tools, what nobody has configured has no part beside what somebody has."""

    HERE = Configuration(python=Path(sys.executable))  # with mutmut and with cosmic-ray

    def tools(self, root: Path, options: Configuration = HERE) -> list[str]:
        return [tool.label for tool in Router(Survey(root, options, None, installed()).places()).tools]

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

    async def test_doctor_says_so(self, root: Path) -> None:
        async with contextlib.aclosing(diagnose(root, self.HERE, None)) as findings:
            told = {finding.subject: finding async for finding in findings}
        assert told["mutmut"].good
        assert told["mutmut"].text == "not used, for nothing here configures it, and cosmic-ray has its files"


def test_a_broken_plugin_keeps_no_other_from_working(tree: Tree, caplog: pytest.LogCaptureFixture) -> None:
    tree.project("")
    known = {"broken": broken_plugin(), "scripted": installed()["scripted"]}
    places = Survey(tree.root, Configuration(), None, known).places()
    assert [tool.label for tool in Router(places).tools] == ["scripted"]
    assert "the adapter broken" in caplog.text
    with pytest.raises(BridgeError, match="the adapter broken"):
        Survey(tree.root, Configuration(adapters=("broken", "scripted")), None, known).places()


def broken_plugin() -> EntryPoint:
    return EntryPoint("broken", "no_such_module:Adapter", "msp_bridge.adapters")
