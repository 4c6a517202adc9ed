"""What Maven has made of PIT's copy is used by the next bridge, where nothing has changed that it depends on."""

from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.pit import maven
from msp_bridge.adapters.pit.builds import Builds
from support.adapters import discovered, project_at
from support.java_trees import adapter_on, key, needs_pit, results_of, smallest

from msp_bridge.adapter import Status

COMPILE, READ = "test-compile", "help:effective-pom"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Maven was run for in the copy."""
    made = list[str]()
    run = maven.run

    async def recorded(root: Path, what: str, *arguments: str, **options: Any) -> None:
        if what in {COMPILE, READ}:  # and not to get PIT
            made.append(what)
        await run(root, what, *arguments, **options)

    monkeypatch.setattr(maven, "run", recorded)
    return made


@needs_pit
async def test_maven_compiles_again_when_something_has_changed(
    tmp_path: Path, pit_tools: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = smallest(tmp_path)

    async def asked_of_maven() -> list[str]:
        """By a new bridge."""
        calls.clear()
        async with aclosing(Builds(project_at(root), None)) as builds, builds.current() as build:
            assert [module.name for module in build.modules] == [""]
        return calls

    assert await asked_of_maven() == [COMPILE]
    async with adapter_on(root, pit_tools) as adapter:
        mutants = {key(mutant): mutant for mutant in await discovered(adapter)}
        [result] = (await results_of(adapter, [mutants["5 Math"]])).values()
    assert (result.status, calls) == (Status.KILLED, [COMPILE, READ])
    test = root / "src/test/java/f/FTest.java"
    test.write_text(test.read_text().replace("(2, ", "(2L, "))
    assert await asked_of_maven() == [COMPILE]
    [made] = tmp_path.glob("cache/*/*/target/test-classes/f/FTest.class")
    made.write_bytes(made.read_bytes())
    assert await asked_of_maven() == [COMPILE]
    monkeypatch.setenv("MAVEN_OPTS", "-Dany=thing")
    assert await asked_of_maven() == [READ, COMPILE]
    wrapper = root / "mvnw"
    first, _, rest = wrapper.read_text().partition("\n")
    wrapper.write_text(f"{first}\nmkdir -p made && date > made/file\n{rest}")
    for _ in range(2):  # the copy has lost what it makes
        assert await asked_of_maven() == [COMPILE]
