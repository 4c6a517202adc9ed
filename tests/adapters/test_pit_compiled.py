"""What Maven has made of PIT's copy is used by the next bridge, where nothing has changed that it depends on."""

from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.pit import maven
from msp_bridge.adapters.pit.builds import Builds, targets
from msp_bridge.adapters.pit.outside import Outside
from support.adapters import discovered, project_at
from support.files import written
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


@needs_pit
async def test_a_directory_that_is_not_target_has_nothing_of_an_earlier_build(tmp_path: Path, calls: list[str]) -> None:
    root = smallest(tmp_path)
    for name in ("mvnw", "pom.xml"):
        file = root / name
        file.write_text(file.read_text().replace("target", "out"))
    stale = "out/classes/f/F.class"
    written(root, {stale: "an old one", "out/test-classes/f/GoneTest.class": "of the user"})
    for _ in range(2):
        async with aclosing(Builds(project_at(root), None)) as builds, builds.current() as build:
            assert [file.name for file in build.root.glob("out/test-classes/f/*")] == ["FTest.class"]
            assert (build.root / stale).read_bytes() != b"an old one"
    assert calls == [COMPILE] * 4
    assert (root / stale).read_bytes() == b"an old one"


@needs_pit
async def test_a_jar_that_is_built_again_meanwhile_has_all_compiled_again(tmp_path: Path, calls: list[str]) -> None:
    root, jar = smallest(tmp_path), tmp_path / "other" / "a.jar"
    written(tmp_path, {"other/a.jar": "1"})
    script = root / "mvnw"
    script.write_text(script.read_text().replace("echo ", f"echo {jar}:"))
    async with aclosing(Builds(project_at(root), None)) as builds:
        for text in ("1", "22"):
            jar.write_text(text)
            async with builds.current() as build, builds.current() as same:
                assert same is build
    assert [call for call in calls if call == COMPILE] == [COMPILE] * 2


def test_outside_are_jars_settings_and_parents_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    above = ".m2/repository/a/b/top/2-SNAPSHOT/top-2-SNAPSHOT.pom"
    parent = "<parent><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></parent>"
    poms = {
        "pom.xml": parent.format("a.b", "below", "1"),
        ".m2/repository/a/b/below/1/below-1.pom": parent.format("a.b", "top", "2-SNAPSHOT"),
    }
    written(tmp_path, {above: "<project/>", **poms})
    outside = Outside.of(tmp_path / "copy", tmp_path / "pom.xml", ())
    assert outside.is_current()
    written(tmp_path, {above: "<project></project>"})
    assert not outside.is_current()
    outside = Outside.of(tmp_path / "copy", tmp_path / "pom.xml", ())
    written(tmp_path, {".m2/settings.xml": ""})
    assert not outside.is_current()


def test_only_modules_have_a_target(tmp_path: Path) -> None:
    written(
        tmp_path,
        {
            "pom.xml": "<modules><module>a</module><module>../b</module></modules>",
            "a/pom.xml": "<profile><modules><module>c/other.xml</module><module>../a</module></modules></profile>",
            "a/src/test/resources/one/pom.xml": "<project/>",
        },
    )
    assert targets(tmp_path) == {"a/target/", "a/c/target/"}
