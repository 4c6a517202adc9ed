"""What `msp-bridge doctor` shows."""

from collections.abc import AsyncGenerator

import pytest
from support.scripted_trees import Tree

from msp_bridge.adapter import Adapter, Finding
from msp_bridge.environment.distributions import installed
from msp_bridge.errors import SEE_DOCTOR, ToolError
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.workspace import Workspace


def empty_environment(tree: Tree) -> None:
    """An environment of the project's own, with no tool installed in it."""
    tree.write(".venv/pyvenv.cfg", "")
    tree.write(".venv/bin/python", "").chmod(0o755)


async def found_in(tree: Tree, options: Configuration | None = None) -> list[tuple[bool, str, str]]:
    return [(finding.good, finding.subject, finding.text) for finding in await tree.findings(options)]


async def test_a_folder_that_lacks_its_chosen_tool_is_shown(tree: Tree) -> None:
    tree.project("api/")
    (tree.root / "web").mkdir()
    tree.write("msp-bridge.toml", "adapter = 'scripted'\n[folders.web]\nadapter = 'scripted'\n")
    found = await found_in(tree)
    assert (True, "project", str(tree.root / "web/")) in found
    assert (False, "scripted", f"there is no scripted.json in {tree.root / 'web'}") in found


async def test_without_a_tool_those_come_first_that_fit_what_is_here(tree: Tree) -> None:
    empty_environment(tree)
    for name in ("a/b.py", "a/c.py", "d.py", "build.rs", "node_modules/x/Many.cs", "node_modules/x/More.cs"):
        tree.write(name, "")
    assert [(good, subject) for good, subject, _ in await found_in(tree)] == [
        (True, "project"),
        (True, "msp-bridge"),
        (False, "tools"),
        (False, "cosmic-ray"),
        (False, "mutmut"),
        (False, "scripted"),
        (False, "cargo-mutants"),
        (True, "generic"),
        (True, "others"),
    ]
    assert (await found_in(tree))[-1][2] == "no matching files: gremlins, pit, stryker-js, stryker-net"
    tree.write("Cart.cs", "")
    assert [subject for _, subject, _ in await found_in(tree)][6:8] == ["cargo-mutants", "stryker-net"]
    tree.write("cart.js", "")
    assert (True, "generic") in [(good, subject) for good, subject, _ in await found_in(tree)]


async def test_a_tool_that_is_missing_is_looked_for_where_its_project_is(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several languages, the first remedy sets all of them up."""
    empty_environment(tree)
    monkeypatch.setenv("PATH", str(tree.root))
    monkeypatch.setenv("HOME", str(tree.root))
    for variable in ("GOPATH", "GOBIN", "CARGO_HOME"):
        monkeypatch.delenv(variable, raising=False)
    tree.write("svc/go.mod")
    tree.write("svc/shop.go")
    wrong = [finding for finding in await tree.findings() if not finding.good]
    assert [(finding.subject, finding.text) for finding in wrong[1:]] == [("gremlins", "it is not installed")]
    tree.write("web/package.json", '{"scripts": {"test": "jest"}, "devDependencies": {"jest": "30"}}')
    tree.write("web/src/shop.js")
    heading, *wrong = [finding for finding in await tree.findings() if not finding.good]
    assert (heading.text, heading.remedy) == ("no tool found", "msp-bridge init")
    assert [finding.subject for finding in wrong] == ["gremlins", "stryker-js"]
    assert f"in {tree.root / 'web'}, and" in wrong[1].text


async def test_a_tool_that_was_chosen_is_shown_also_when_nothing_here_is_for_it(tree: Tree) -> None:
    tree.write("a.py", "")
    found = await found_in(tree, Configuration(adapters=("stryker-net",)))
    assert [(good, subject) for good, subject, _ in found[2:]] == [(False, "stryker-net")]


async def test_a_folder_without_files_for_any_tool_is_one_fault(tree: Tree) -> None:
    (fault,) = [finding for finding in await tree.findings() if not finding.good]
    assert fault.text.startswith("none is set up here, and there are no files for any of cargo-mutants (*.rs), ")
    assert (
        fault.remedy == "name the project's directory with `--root`; for other languages, write a table [generic.NAME]"
    )


async def test_all_tools_switched_off_is_no_good(tree: Tree) -> None:
    tree.project("")
    tree.write("msp-bridge.toml", "adapter = []\n")
    assert (False, "msp-bridge", "`adapter` is empty: no tool is used") in await found_in(tree)


async def test_options_are_not_taken_for_a_file_that_sets_nothing(tree: Tree) -> None:
    tree.project("")
    tree.write("pyproject.toml", "[project]\nname = 'x'\n")
    found = await found_in(tree, Configuration(adapters=("scripted",)))
    assert (True, "msp-bridge", "configuration of the command line") in found


@pytest.mark.parametrize("raised", [True, False])
@pytest.mark.parametrize(("remedy", "shown"), [(SEE_DOCTOR, None), ("install it", "install it"), (None, None)])
async def test_a_finding_shows_problem_and_remedy_and_sends_nobody_to_doctor(
    remedy: str | None, shown: str | None, raised: bool, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: Adapter) -> AsyncGenerator[Finding, None]:
        if raised:
            raise ToolError("no such thing", remedy)
        yield Finding(False, "scripted", "no such thing", remedy)

    tree.project("")
    monkeypatch.setattr(installed()["scripted"].load(), "diagnose", fails)
    *_, last = await tree.findings(Configuration(adapters=("scripted",)))
    assert last == Finding(False, "scripted", "no such thing", shown)


class TestSharedFiles:
    """Which of two tools gets the files that both could mutate, and why."""

    @pytest.fixture
    def both(self, tree: Tree) -> Tree:
        """A scripted tool and a generic one at the root, for the same Python files."""
        generic = "[generic.mine]\nfiles = ['**/*.py']\ndiscover = ['true', '{report}']\ntest = ['true', '{report}']\n"
        empty_environment(tree)
        tree.project("", files="*.py")
        tree.write("msp-bridge.toml", generic)
        tree.write("a.py")
        tree.write("sub/b.py")
        tree.write("c.txt")
        return tree

    async def shared(self, tree: Tree) -> list[str]:
        return [finding.text for finding in await tree.findings() if finding.subject == "files"]

    async def test_the_first_by_name_gets_them(self, both: Tree) -> None:
        assert await self.shared(both) == [
            "generic gets 2 files that scripted could mutate, too: its name comes first; `adapter` sets another order"
        ]

    async def test_the_first_that_is_listed_gets_them(self, both: Tree) -> None:
        own = both.root / "msp-bridge.toml"
        own.write_text(f"adapter = ['scripted', 'generic']\n{own.read_text()}")
        text = "scripted gets 2 files that generic could mutate, too: `adapter` lists it first"
        assert await self.shared(both) == [text]

    async def test_the_nearest_gets_them(self, both: Tree) -> None:
        (both.root / "scripted.json").unlink()
        both.project("sub/")
        assert await self.shared(both) == [
            "scripted in sub/ gets 1 file that generic could mutate, too: sub/ is the nearest project around them"
        ]

    async def test_nothing_is_said_where_no_file_is_shared(self, both: Tree) -> None:
        both.project("", files="*.txt")
        assert await self.shared(both) == []


class TestMisplaced:
    """A table of a tool that is about the root, when that tool is elsewhere."""

    ABOUT = "is about the root, where scripted isn't set up"

    async def reported(self, tree: Tree, caplog: pytest.LogCaptureFixture, named: str | None = None) -> str:
        """What the log says in one warning, and `msp-bridge doctor` as a fault with a remedy."""
        caplog.clear()
        tree.opened(named=named)
        (warning,) = caplog.messages
        (wrong,) = [finding for finding in await tree.findings(named=named) if self.ABOUT in finding.text]
        assert (wrong.good, warning) == (False, f"{wrong.text}: {wrong.remedy}")
        return warning

    async def test_the_remedy_names_the_right_place(self, tree: Tree, caplog: pytest.LogCaptureFixture) -> None:
        tree.project("web/")
        tree.write("msp-bridge.toml", "[scripted]\na = 1\n")
        assert await self.reported(tree, caplog) == (
            f'`[scripted]` {self.ABOUT}: write [folders."web".scripted], or [scripted] in web/msp-bridge.toml'
        )
        for folder in ("api/", "services/mail/", "services/shop/"):
            tree.project(folder)
        assert await self.reported(tree, caplog) == (
            f'`[scripted]` {self.ABOUT}: write [folders."api".scripted], [folders."web".scripted], '
            '[folders."services/mail".scripted], and so on for 1 more, or [scripted] in the msp-bridge.toml of each'
        )

    async def test_it_is_called_what_it_is_called_in_its_file(
        self, tree: Tree, caplog: pytest.LogCaptureFixture
    ) -> None:
        tree.project("web/")
        file = tree.write("pyproject.toml", "[tool.msp-bridge.scripted]\na = 1\n")
        for named in (None, str(file), str(tree.root / "web/scripted.json")):
            assert 'write [tool.msp-bridge.folders."web".scripted], or' in await self.reported(tree, caplog, named)
        tree.write("msp-bridge.toml", "[scripted]\na = 1\n")
        assert 'write [folders."web".scripted], or' in await self.reported(tree, caplog)

    @pytest.mark.parametrize("text", ["[folders.web.scripted]\na = 1\n", "[scripted]\na = 1\n"])
    def test_a_table_in_its_place_is_no_fault(self, text: str, tree: Tree, caplog: pytest.LogCaptureFixture) -> None:
        for folder in ("web/", "") if text.startswith("[scripted]") else ("web/",):
            tree.project(folder)
        tree.write("msp-bridge.toml", text)
        tree.opened()
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
        assert await self.reported(tree, caplog) == (
            f"`[scripted]` {self.ABOUT}: remove the table, as each folder where scripted is set up has its own"
        )

    @pytest.mark.parametrize("broken", ["nonsense = 1\n", "python = 'none'\n", 'python = "a\\u0000b"\n'])
    async def test_a_broken_folder_may_have_the_tool(
        self, broken: str, tree: Tree, caplog: pytest.LogCaptureFixture
    ) -> None:
        tree.project("web/")
        tree.write("msp-bridge.toml", "[scripted]\na = 1\n")
        tree.write("web/msp-bridge.toml", broken)
        tree.opened()
        assert caplog.messages == []
        texts = [finding.text for finding in await tree.findings() if not finding.good]
        assert not any(self.ABOUT in text for text in texts)
        assert any("nonsense" in text or "interpreter" in text for text in texts)

    async def test_a_tool_that_is_nowhere_is_to_be_set_up(self, tree: Tree, caplog: pytest.LogCaptureFixture) -> None:
        tree.project("")
        tree.write("msp-bridge.toml", "[stryker-js]\nwarm = 1\n")
        Workspace.of(tree.detect(None, None, "stryker-js"))
        (warning,) = caplog.messages
        assert warning == (
            "`[stryker-js]` is about the root, where stryker-js isn't set up, nor in any folder: "
            "set it up, or remove the table"
        )
