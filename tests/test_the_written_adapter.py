"""The adapter that docs/how-to/writing-an-adapter.md shows is taken from there, and is right."""

import contextlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from msp_bridge.adapter import Adapter, ConfigurationError, Finding, Project, Scope, Status, ToolError
from msp_bridge.source import SourceText
from msp_bridge.testing import check_adapter

PAGES = Path(__file__).parents[1] / "docs/how-to"
DOCUMENT = PAGES / "writing-an-adapter.md"
TEXT = DOCUMENT.read_text("utf-8") + (PAGES / "adapters-of-difficult-tools.md").read_text("utf-8")
TOOL = Path(__file__).parent / "support" / "scripted" / "mutate_tool.py"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
SOURCE = "é = '😀' + str(price * 2)\nsmall = price < 3\nlarge = price + 1 < 9\n"
CHECK = """
names = {"price": 1}
exec(open("prices.src", encoding="utf-8").read(), names)
assert names["é"] == "😀2" and names["small"]
"""


@pytest.fixture
def mutate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Adapter]:
    """The class of the document, and its tool on PATH."""
    program = tmp_path / "programs" / "mutate"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S {TOOL} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    module = ModuleType("the_written_adapter")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    (block,) = [block for block in BLOCKS if "class Mutate" in block]
    exec(compile(block, str(DOCUMENT), "exec"), module.__dict__)
    adapter: type[Adapter] = module.__dict__["Mutate"]
    return adapter


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    root.mkdir()
    (root / "mutate.toml").touch()
    (root / "prices.src").write_text(SOURCE, encoding="utf-8")
    (root / "check.py").write_text(CHECK, encoding="utf-8")
    return Project(root=root, cache=tmp_path / "cache", jobs=2)


async def test_the_written_adapter_keeps_its_promises(mutate: type[Adapter], project: Project) -> None:
    await check_adapter(mutate, project)


async def test_its_mutants_and_results_are_true(mutate: type[Adapter], project: Project) -> None:
    adapter = mutate.detect(project)
    assert adapter is not None
    async with contextlib.aclosing(adapter):
        mutants = [mutant async for mutant in adapter.discover(Scope())]
        results = {result.mutant: result.status async for result in adapter.test(mutants)}
        assert [finding async for finding in adapter.diagnose()] == [Finding(True, "mutate", "mutate 1.0")]
    source = SourceText.read(project.root / "prices.src")
    assert {
        source.apply(mutant).split("\n")[mutant.location.start.line - 1]: results[mutant] for mutant in mutants
    } == {
        "é = '😀' - str(price * 2)": Status.KILLED,
        "é = '😀' + str(price + 2)": Status.KILLED,
        "small = price <= 3": Status.SURVIVED,
        "large = price - 1 < 9": Status.SURVIVED,
        "large = price + 1 <= 9": Status.SURVIVED,
    }


async def test_its_failures_are_clear(
    mutate: type[Adapter], project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert mutate.detect(Project(root=tmp_path, cache=tmp_path / "cache")) is None
    assert mutate.detect(Project(root=project.root, cache=project.cache, config_file=Path("other.toml"))) is None
    with pytest.raises(ConfigurationError, match=r"has no setting 'speed': write it in mutate\.toml, or remove it"):
        mutate.detect(Project(root=project.root, cache=project.cache, settings={"speed": 1}))
    adapter = mutate.detect(project)
    assert adapter is not None
    (project.root / "broken.src").write_bytes(b"\xff")
    with pytest.raises(ToolError, match=r"^mutate failed: broken\.src is no UTF-8; try it by hand: mutate list$"):
        _ = [mutant async for mutant in adapter.discover(Scope())]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.strip().splitlines()[-1].strip()[:40])
def test_every_example_is_valid_python(block: str) -> None:
    compile(block, str(DOCUMENT), "exec")
