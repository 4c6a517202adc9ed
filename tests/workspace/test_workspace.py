"""Requests to several projects: who does which part, and what an error of one means for the others."""

import contextlib
import re
from collections.abc import Sequence
from typing import Any, cast

import pytest
from support.scripted_trees import DIGIT, Tree, notices, paths, statuses

from msp_bridge.adapter import AskRanAlone, FailingTest, Mutant, Ran, Reach, Remark, Scope, UnusableFile
from msp_bridge.errors import BridgeError, ToolError
from msp_bridge.model import Location, Position
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.projects import MountedAdapter, UnavailableAdapter
from msp_bridge.workspace.selection import KnownMutant, Selection


class TestRouting:
    """Which tool gets a file, and which have a part in a request."""

    async def test_every_project_gives_its_mutants_with_the_paths_of_the_tree(self, tree: Tree) -> None:
        for folder in ("", "web/", "services/api/"):
            tree.project(folder)
            tree.write(f"{folder}a.py", "1")
        async with tree.open() as workspace:
            assert await paths(workspace) == ["a.py", "services/api/a.py", "web/a.py"]
            assert await statuses(workspace) == ["a.py Killed", "services/api/a.py Killed", "web/a.py Killed"]

    async def test_the_names_of_tests_say_which_project_has_them(self, tree: Tree) -> None:
        tests = {"covered_by": ["test_a", "test_b"], "killed_by": ["test_a"]}
        for folder in ("", "web/"):
            tree.project(folder, {**DIGIT, "details": tests})
            tree.write(f"{folder}a.py", "1")
        async with tree.open() as workspace:
            async with contextlib.aclosing(workspace.test(Selection())) as results:
                found = {
                    result.mutant.path: [*(result.covered_by or ()), *(result.killed_by or ())]
                    async for result in results
                }
        assert found == {
            "a.py": ["test_a", "test_b", "test_a"],
            "web/a.py": ["web/: test_a", "web/: test_b", "web/: test_a"],
        }

    async def test_what_a_tool_tells_names_files_and_tests_of_the_tree(self, tree: Tree) -> None:
        said = {"unusable": {"b.py": "it is no code"}, "remarks": {"a.py": "it is large"}}
        tree.project("web/", discovery=said, testing={"failing": {"test_a": "1 != 2"}})
        tree.write("web/a.py", "1")
        async with tree.open() as workspace:
            found = await notices(workspace)
            assert await statuses(workspace) == ["web/a.py Killed"], "what it tells goes before its result"
        assert {(type(notice), getattr(notice, "path", None) or getattr(notice, "test", None)) for notice in found} == {
            (UnusableFile, "web/b.py"),
            (Remark, "web/a.py"),
            (FailingTest, "web/: test_a"),
        }

    async def test_a_project_is_asked_for_the_reach_of_its_own_mutants(self) -> None:
        class Reaching(UnavailableAdapter):
            async def reach(self, mutants: Sequence[Mutant], known: AskRanAlone, *, alone: bool) -> dict[Mutant, Reach]:
                return {mutant: Reach((mutant.path,), frozenset([f"{known} {alone}"])) for mutant in mutants[:1]}

            def ran_alone(self) -> dict[str, tuple[Ran, ...]]:
                return {"test_a": ()}

        mounted = MountedAdapter(cast(Any, Reaching(BridgeError("none"))), "web/")
        one, other = (Mutant(f"web/{name}.py", "digit", Location(Position(1, 1), Position(1, 2)), "2") for name in "ab")
        known = cast(Any, "known")
        assert await mounted.reach([one, other], known, alone=True) == {
            one: Reach(("web/: a.py",), frozenset(["known True"]))
        }
        assert mounted.ran_alone() == {"test_a": ()}
        assert MountedAdapter(cast(Any, UnavailableAdapter(BridgeError("none")))).ran_alone() == {}

    async def test_the_nearest_project_that_claims_a_file_has_it(self, tree: Tree) -> None:
        tree.project("", {**DIGIT, "mutator": "root"}, files="*")
        tree.project("web/", {**DIGIT, "mutator": "web"}, files="*.js")
        tree.write("web/a.js", "1")
        tree.write("web/a.py", "1")
        async with tree.open() as workspace:
            async with contextlib.aclosing(workspace.discover(Selection())) as mutants:
                found = sorted([(mutant.path, mutant.mutator) async for mutant in mutants])
        assert found == [("web/a.js", "web"), ("web/a.py", "root")]

    async def test_a_folder_with_chosen_tools_gives_no_file_to_those_around_it(self, tree: Tree) -> None:
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

    def test_a_tool_without_a_part_in_a_request_is_not_used(self, tree: Tree) -> None:
        for folder in ("", "web/", "api/"):
            tree.project(folder)
        projects = tree.detect()

        def parts(*paths: str) -> list[tuple[str, bool]]:
            return [(part.tool.folder, part.named) for part in projects.parts(Scope(frozenset(paths)))]

        assert parts("web/a.py") == [("web/", True)]
        assert parts("web/a.js") == []
        assert parts("a.py", "api/b.py") == [("", True), ("api/", True)]
        assert parts("web/src/") == [("", False), ("web/", True)]
        assert parts("/") == [("", False), ("api/", False), ("web/", False)]

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

    async def test_a_tool_may_have_no_comment_by_which_it_ignores_a_mutant(self, tree: Tree) -> None:
        tree.project("web/")
        tree.write("web/a.py", "1")
        async with tree.open() as workspace:
            async with contextlib.aclosing(workspace.discover(Selection())) as mutants:
                mutant = await anext(mutants)
            problem = "the bridge has no comment by which scripted in web/ ignores a mutant"
            remedy = "see the tool's own documentation for how it leaves out code"
            with pytest.raises(ToolError, match=f"^{problem}: {remedy}$"):
                await workspace.ignore(mutant, "")
            tree.write("web/a.py", "x")
            with pytest.raises(ToolError, match=r"web/a.py has no such mutant any more: list its mutants again"):
                await workspace.ignore(mutant, "")


class TestFaults:
    """One broken project never breaks the others."""

    @pytest.fixture
    def broken(self, tree: Tree) -> Tree:
        for folder in ("api/", "web/"):
            tree.project(folder)
            tree.write(f"{folder}a.py", "1")
        tree.project("web/", discovery={"raises": ["ToolError", "no such thing", "install it"]})
        return tree

    async def test_the_others_do_their_part_before_the_error_is_raised(self, broken: Tree) -> None:
        async with broken.open() as workspace:
            async with contextlib.aclosing(workspace.test(Selection())) as results:
                assert (await anext(results)).mutant.path == "api/a.py"
                assert str(await anext(results)) == "scripted in web/: no such thing: install it"
                assert [item async for item in results] == []

    async def test_a_request_that_names_it_gets_the_error(self, broken: Tree) -> None:
        async with broken.open() as workspace:
            for target in ("web/a.py", "web/"):
                with pytest.raises(BridgeError, match=r"^scripted in web/: no such thing"):
                    await statuses(workspace, target)

    async def test_a_request_that_names_others_too_gets_theirs(self, broken: Tree) -> None:
        async with broken.open() as workspace:
            for targets in (("web/", "api/"), ("web/a.py", "api/a.py")):
                [failure] = await notices(workspace, *targets)
                assert str(failure) == "scripted in web/: no such thing: install it"

    async def test_mutants_that_could_not_be_tested_say_why(self, broken: Tree) -> None:
        broken.project("web/", testing={"raises": ["ToolError", "its tests fail", "fix them first"]})
        async with broken.open() as workspace:
            async with contextlib.aclosing(workspace.test(Selection())) as results:
                two = [await anext(results), await anext(results)]
                assert str(await anext(results)) == "scripted in web/: its tests fail: fix them first"
        assert {(result.mutant.path, result.status.value, result.status_reason) for result in two} == {
            ("api/a.py", "Killed", None),
            ("web/a.py", "Ignored", "not tested: scripted in web/: its tests fail: fix them first"),
        }

    @pytest.mark.parametrize(
        ("raises", "reason"),
        [
            (["ToolError", "no such thing", "install it"], "no such thing: install it"),
            (
                ["RuntimeError", "x"],
                "RuntimeError('x'), a fault of the adapter: please report it, with the log",
            ),
        ],
    )
    @pytest.mark.parametrize("phase", ["discovery", "testing"])
    async def test_known_mutants_have_a_result_also_when_discovery_fails(
        self, broken: Tree, phase: str, raises: list[str], reason: str
    ) -> None:
        broken.project("web/")
        async with broken.open() as workspace:
            async with contextlib.aclosing(workspace.discover(Selection())) as mutants:
                ids = {mutant.path: mutant.id async for mutant in mutants}
            broken.project("web/", **{phase: {"raises": raises}})
            one = Location(Position(1, 1), Position(1, 2))
            known = [KnownMutant(path, one, "digit", "2") for path in ("api/a.py", "web/a.py", "web/a.py", "none.txt")]
            without_id = KnownMutant("web/a.py", one, "digit", None)  # its id can't be known
            async with contextlib.aclosing(workspace.test(Selection(mutants=(*known, without_id)))) as results:
                two = [await anext(results), await anext(results)]
                failure = await anext(results)
        assert str(failure) == f"scripted in web/: {reason}"
        assert {(result.mutant.id, result.status.value, result.status_reason) for result in two} == {
            (ids["api/a.py"], "Killed", None),
            (ids["web/a.py"], "Ignored", f"not tested: scripted in web/: {reason}"),
        }

    async def test_when_all_fail_it_is_no_partial_failure(self, broken: Tree) -> None:
        broken.project("api/", testing={"raises": ["ToolError", "nor that"]})
        async with broken.open() as workspace:
            with pytest.raises(BridgeError, match="scripted in api/: nor that; scripted in web/: no such"):
                await statuses(workspace)

    async def test_a_fault_of_an_adapter_costs_no_other_its_results(
        self, broken: Tree, caplog: pytest.LogCaptureFixture
    ) -> None:
        broken.project("web/", testing={"raises": ["RuntimeError", "our own mistake"]})
        async with broken.open() as workspace:
            [failure] = await notices(workspace)
        assert re.search(r"our own mistake.*a fault of the adapter: please report it", str(failure))
        assert "Traceback" in caplog.text

    async def test_a_wrong_configuration_is_the_error_of_requests_to_its_folder(self, broken: Tree) -> None:
        broken.write("web/msp-bridge.toml", "jobs = 0\n")
        async with broken.open() as workspace:
            assert await paths(workspace, "api/a.py") == ["api/a.py"]
            with pytest.raises(BridgeError, match=r"msp-bridge\.toml: jobs must be a whole number"):
                await paths(workspace, "web/a.py")

    async def test_doctor_shows_each_folder_and_a_fault_hides_nothing(self, broken: Tree) -> None:
        broken.write("web/msp-bridge.toml", "jobs = 0\n")
        options = Configuration(adapters=("scripted",))
        found = [(finding.good, finding.subject) for finding in await broken.findings(options)]
        assert found == [
            (True, "project"),
            (True, "msp-bridge"),
            (True, "project"),
            (True, "script"),
            (True, "project"),
            (False, "msp-bridge"),
        ]
