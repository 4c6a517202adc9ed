"""What the PIT adapter reads, of poms, of Maven and of PIT: without a JVM."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.pit import Pit
from msp_bridge.adapters.pit.builds import Builds
from msp_bridge.adapters.pit.configuration import ModuleConfiguration, configurations
from msp_bridge.adapters.pit.host import settings
from msp_bridge.adapters.pit.kept import KeptCoverage, surroundings
from msp_bridge.adapters.pit.listing import (
    ModuleListing,
    all_ran,
    calling_line,
    failing_tests,
    killing_tests,
    line_location,
    readable_name,
)
from msp_bridge.adapters.pit.maven import Module, run, shown
from msp_bridge.adapters.pit.modules import STATUSES, concerns, result
from msp_bridge.adapters.pit.testers import NATIVE, Launch, has_class
from msp_bridge.adapters.pit.tool import Tool, artifacts
from support.files import written

from msp_bridge import reading
from msp_bridge.adapter import ConfigurationError, Location, Mutant, Position, Project, Scope, Status, UnusableFile
from msp_bridge.source import SourceText
from msp_bridge.toolkit import Sandbox
from msp_bridge.toolkit.kept_answers import KeptAnswers

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <artifactId>shop</artifactId>
  <properties><targetClasses>a.*,b.*</targetClasses><timeoutFactor>2</timeoutFactor></properties>
  <build>
    <directory>{root}/target</directory>
    <sourceDirectory>{root}/src/main/java</sourceDirectory>
    <outputDirectory>{root}/target/classes</outputDirectory>
    <testOutputDirectory>{root}/target/test-classes</testOutputDirectory>
    <plugins>{plugins}</plugins>
  </build>
</project>"""
PLUGIN = """<plugin><artifactId>pitest-maven</artifactId><version>1.17.0</version>
  <configuration>{configuration}</configuration>
  <dependencies>{dependencies}</dependencies>
</plugin>"""
JUNIT5 = """<dependency><groupId>org.pitest</groupId><artifactId>pitest-junit5-plugin</artifactId>
<version>1.2.1</version></dependency>"""
SUREFIRE = """<plugin><artifactId>maven-surefire-plugin</artifactId><configuration><argLine>@{argLine} ${argLine} -Xmx1g</argLine>
<groups>fast</groups><excludes><exclude>**/*IT.java</exclude></excludes></configuration></plugin>"""


def configured(root: Path, configuration: str = "", others: str = "", dependencies: str = "") -> ModuleConfiguration:
    plugin = PLUGIN.format(configuration=configuration, dependencies=dependencies)
    [found] = configurations(POM.format(root=root, plugins=plugin + others), None)
    return found


def test_parameters_stand_in_the_plugin_or_in_properties_of_the_same_name(tmp_path: Path) -> None:
    found = configured(
        tmp_path,
        "<excludedMethods><param>toString</param><param>hash*</param></excludedMethods><mutators>STRONGER, MATH</mutators>"
        "<extraFeatures><f>+X</f></extraFeatures><features><f>-FLOGCALL</f></features><timeoutConstant>500</timeoutConstant>"
        "<environmentVariables><A>b</A></environmentVariables><mutationThreshold>80</mutationThreshold>"
        "<skipFailingTests>true</skipFailingTests><detectInlinedCode>false</detectInlinedCode>",
    )
    assert found.lists["targetClasses"] == ("a.*", "b.*")
    assert found.lists["excludedMethods"] == ("toString", "hash*")
    assert found.lists["mutators"] == ("STRONGER", "MATH")
    assert found.lists["features"] == ("-FLOGCALL", "+X")
    assert (found.timeout_constant_ms, found.timeout_factor, found.threshold) == (500, 2.0, 80.0)
    assert found.environment == {"A": "b"}
    assert found.flags == {"detectInlinedCode": False, "skipFailingTests": True, "fullMutationMatrix": False}


@pytest.mark.parametrize("parsed", [True, False])
def test_the_configuration_of_surefire_counts_unless_the_plugin_says_no(tmp_path: Path, parsed: bool) -> None:
    own = "<jvmArgs><arg>-ea</arg></jvmArgs>" + ("" if parsed else "<parseSurefireConfig>false</parseSurefireConfig>")
    lists = configured(tmp_path, own, SUREFIRE).lists
    assert lists["jvmArgs"] == (("-ea", "-Xmx1g") if parsed else ("-ea",))
    assert lists["includedGroups"] == (("fast",) if parsed else ())
    assert lists["excludedTestClasses"] == (("**.*IT",) if parsed else ())


def test_a_pom_without_the_plugin_needs_a_version_of_the_settings(tmp_path: Path) -> None:
    pom = POM.format(root=tmp_path, plugins="")
    with pytest.raises(ConfigurationError, match="the effective pom of shop has no plug-in pitest-maven"):
        configurations(pom, None)
    [found] = configurations(pom, "1.25.9")
    assert (found.version, found.in_pom) == ("1.25.9", False)


def test_modules_are_those_that_have_code(tmp_path: Path) -> None:
    parent = "<project><packaging>pom</packaging></project>"
    child = POM.format(root=tmp_path, plugins=PLUGIN.format(configuration="", dependencies=""))
    text = f"<projects>{parent}<!-- module -->{child}</projects>"
    assert len(configurations(text, None)) == 1
    assert len(configurations(f'<!-- Maven -->\n<?xml version="1.0"?>\n{text}', None)) == 1  # its help plugin 3.3


def test_a_module_may_be_built_anywhere(tmp_path: Path) -> None:
    scripts = "<scriptSourceDirectory>{root}/src/main/scripts</scriptSourceDirectory>"
    text = POM.replace("{root}/target", "{root}/build/maven").replace("<build>", f"<build>{scripts}")
    [found] = configurations(text.format(root=tmp_path, plugins=""), "1.25.9")
    assert (found.directory, found.built) == (tmp_path, tmp_path / "build" / "maven")


def test_the_plugin_for_junit_5_is_asked_for_and_its_launcher_is_that_of_the_project(tmp_path: Path) -> None:
    class_path = ("/m/junit-platform-engine-1.10.2.jar",)
    with pytest.raises(ConfigurationError, match="pitest-maven has no plug-in for it"):
        artifacts(Module("", configured(tmp_path), class_path))
    assert [
        f"{each.name}:{each.version}"
        for each in artifacts(Module("", configured(tmp_path, "", "", JUNIT5), class_path))
    ] == [
        "pitest-entry:1.17.0",
        "pitest-junit5-plugin:1.2.1",
        "junit-platform-launcher:1.10.2",
    ]
    [without] = configurations(POM.format(root=tmp_path, plugins=""), "1.25.9")
    assert "pitest-junit5-plugin" in {each.name for each in artifacts(Module("", without, class_path))}


def test_without_targets_the_packages_that_have_classes_are_meant(tmp_path: Path) -> None:
    names = ("target/classes/c/D.class", "target/classes/Top.class", "target/test-classes/c/e/T.class")
    written(tmp_path, dict.fromkeys(names, ""))
    pom = POM.replace("<targetClasses>a.*,b.*</targetClasses>", "").format(root=tmp_path, plugins="")
    [configuration] = configurations(pom, "1.25.9")
    found = settings(Module("", configuration, ("/m/lib.jar",)), Tool(("/m/pitest.jar",), tmp_path), tmp_path)
    assert found["targetClasses"] == ("*", "c.*")
    assert found["targetTests"] == ("c.e.*",)
    assert [Path(entry).name for entry in found["classPath"]] == ["test-classes", "classes", "lib.jar", "pitest.jar"]


def test_a_tester_shares_pit_and_the_test_framework_and_no_library_of_the_project(tmp_path: Path) -> None:
    class_path = ("/m/org/junit/jupiter/api.jar", "/m/org/pitest/pitest.jar", "/m/commons-lang3.jar")
    module = Module("", configured(tmp_path), (class_path[0], class_path[2]))
    tool = Tool(class_path[1:], tmp_path / "program")  # PIT needs a library that the project has, too
    argv = Launch.of(module, tool, ("/p/classes", *class_path), ["-ea"]).argv
    assert argv[argv.index("-cp") + 1].split(":")[1:] == list(class_path)
    assert argv[-2:] == (f"/p/classes:{class_path[2]}", ":".join(("/p/classes", *class_path)))


def test_what_testng_needs_is_loaded_for_it_and_for_the_project(tmp_path: Path) -> None:
    framework, needed = "/m/org/testng/testng/testng.jar", "/m/com/beust/jcommander/1.82/jcommander.jar"
    tool = Tool(("/m/org/pitest/pitest.jar",), tmp_path / "program")
    module = Module("", configured(tmp_path), (framework, needed))
    argv = Launch.of(module, tool, ("/p/classes", framework, needed, *tool.class_path), []).argv
    assert argv[argv.index("-cp") + 1].split(":")[1:] == [framework, needed, *tool.class_path]
    assert argv[-2] == f"/p/classes:{needed}"


def test_classes_that_load_native_code_are_found(tmp_path: Path) -> None:
    (tmp_path / "A.class").write_bytes(b"\xca\xfe loadLibrary")
    assert has_class(NATIVE, tmp_path)
    (tmp_path / "A.class").write_bytes(b"\xca\xfe")
    assert not has_class(NATIVE, tmp_path)


def test_a_verdict_depends_on_the_jdk_the_pom_and_the_content_of_jars(tmp_path: Path) -> None:
    root, java, jar, pom = (tmp_path / name for name in ("copy", "jdk/bin/java", "a.jar", "effective-pom.xml"))
    java.parent.mkdir(parents=True)
    jar.write_bytes(b"1")
    pom.write_text(f"<!-- today -->{root}/target<b>r1; 2026-11-26 08:30:00+0000</b>", "utf-8")
    arguments = (java, root, pom, [str(jar), f"{root}/target/classes"])
    assert surroundings(*arguments) is None
    (java.parents[1] / "release").write_text('JAVA_VERSION="17"\n', "utf-8")
    first = surroundings(*arguments)
    assert first is not None
    assert [name for name, _ in first.values["jars"]] == ["a.jar"]
    pom.write_text(f"<!-- tomorrow -->{tmp_path}/other/target<b>r1; 2026-11-27 09:00:00+0000</b>", "utf-8")
    assert surroundings(java, tmp_path / "other", pom, [str(jar)]) == first
    jar.write_bytes(b"2")
    assert surroundings(*arguments) != first


def test_coverage_is_kept_for_a_state_of_all_files_but_compiled_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, jdk, pom = tmp_path / "project", tmp_path / "jdk", tmp_path / "effective-pom.xml"
    for file in (jdk / "release", jdk / "bin" / "java", pom):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x", "utf-8")
    (jdk / "bin" / "java").chmod(0o700)
    monkeypatch.setenv("JAVA_HOME", str(jdk))
    root.mkdir()
    sandbox = Sandbox.claim(tmp_path / "cache", root, left_out=frozenset({"target"}))

    def key_with(path: str, configuration: str = "", parts: tuple[str, ...] = ()) -> bytes | None:
        written(root, {path: "class A {}"})
        sandbox.refresh()
        module = Module("", configured(sandbox.path, configuration), ())
        tool = Tool((), tmp_path / "program")
        kept = KeptCoverage.of(KeptAnswers.of(tmp_path), sandbox, pom, module, tool, frozenset(parts))
        return None if kept is None else kept.key

    with contextlib.closing(sandbox):
        first = key_with("src/main/java/a/A.java")
        assert first == key_with("price/src/test/java/a/ATest.java") is not None
        assert first != key_with("src/main/java/a/A.java", parts=("tmp",))
        test = written(sandbox.path, {"target/test-classes/ATest.class": ""}) / "target/test-classes/ATest.class"
        first = key_with("src/main/java/a/A.java")
        for name, value in {"SHOP_RATE": "2", "TZ": "Asia/Tokyo"}.items():
            with monkeypatch.context() as patch:
                patch.setenv(name, value)
                assert (first == key_with("src/main/java/a/A.java")) == (name == "SHOP_RATE")  # no code reads it
                test.write_bytes(b"\1\0\tSHOP_RATE")
                assert first != key_with("src/main/java/a/A.java")
        assert first == key_with("src/main/java/a/A.java")
        assert first != key_with("data/A.java")  # a test may read it
        assert key_with("data/A.java", "<skipFailingTests>true</skipFailingTests>") is None


async def test_plugins_that_would_fail_for_the_copy_alone_are_told_to_skip(tmp_path: Path) -> None:
    wrapper = tmp_path / "mvnw"
    wrapper.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > asked\n')
    wrapper.chmod(0o755)
    await run(tmp_path, "test-compile", "test-compile")
    asked = (tmp_path / "asked").read_text().split()
    assert {"-Dmaven.gitcommitid.skip=true", "-Dmaven.buildNumber.skip=true", "-Drat.skip=true"} <= {*asked}


def row(line: int, key: str = "k", description: str = "negated conditional", **fields: str) -> dict[str, Any]:
    mutator = "org.pitest.mutationtest.engine.gregor.mutators.NegateConditionalsMutator"
    return {
        "key": key,
        "package": "a.b",
        "file": "C.java",
        "line": line,
        "mutator": mutator,
        "description": description,
    } | fields


def listed(root: Path, *rows: dict[str, Any]) -> list[Mutant | UnusableFile]:
    return ModuleListing(root, Module("", configured(root), ())).items(rows)


def test_mutants_that_agree_in_all_that_pit_says_are_told_apart_by_numbers(tmp_path: Path) -> None:
    source = tmp_path / "src" / "main" / "java" / "a" / "b" / "C.java"
    source.parent.mkdir(parents=True)
    source.write_text("package a.b;\r\n\t if (é || 𝒳) {  \r\n\r\n}\r\n", "utf-8", newline="")
    found = listed(tmp_path, row(4, "4"), row(2, "1"), row(2, "2"), row(2, "3", "removed call"), row(3), row(0), row(9))
    mutants = [item for item in found if isinstance(item, Mutant)]
    assert [(mutant.handle.key, mutant.replacement) for mutant in mutants] == [
        ("1", "negated conditional"),
        ("2", "negated conditional (2)"),
        ("3", "removed call"),
        ("4", "negated conditional"),
    ]
    assert {mutant.path for mutant in mutants} == {"src/main/java/a/b/C.java"}
    assert mutants[0].location == Location(Position(2, 3), Position(2, 17))
    assert len({mutant.id for mutant in mutants}) == len(mutants) == 4


def test_the_file_is_that_of_the_package_and_generated_code_has_none(tmp_path: Path) -> None:
    texts = {
        "java/x/C.java": b"package x;\n",
        "java/xa/b/C.java": b"package xa.b;\n",
        "java/za/b/C.java": b"package a.b;\n",
        "java/a/b/C.java": b"class C\n",
        "java/a/b/Bad.java": b"\xff",
        "java/D.java": b"class D\n",
        "java/x/D.java": b"package x;\n",
        "kotlin/K.kt": b'@file:JvmName("Kay")\npackage a.`b`\n',
    }
    written(tmp_path / "src/main", texts)
    generated = row(1, file="Generated.java"), row(1, package="generated")
    here = row(1), row(1, file="K.kt"), row(1, file="Bad.java"), row(1, file="D.java", package="")
    found = listed(tmp_path, *generated, *here)
    assert [item.path for item in found] == [
        f"src/main/{name}" for name in ("java/a/b/Bad.java", "java/D.java", "java/a/b/C.java", "kotlin/K.kt")
    ]
    assert isinstance(found[0], UnusableFile)


def test_for_many_mutants_of_generated_code_a_file_of_the_same_name_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "src/main", {"java/x/C.java": b"package x;\n"})
    read: list[Path] = []
    monkeypatch.setattr(reading, "content_or_empty", lambda file: read.append(file) or file.read_bytes())
    assert listed(tmp_path, *(row(1, key) for key in "123")) == []
    assert read == [tmp_path / "src/main/java/x/C.java"]


def test_a_mutant_in_inlined_code_of_kotlin_has_the_line_that_calls_it() -> None:
    own, library = "1#1,33:1", "14#2,6:34\n774#3,2:40"
    debug = f"SMAP\nA.kt\nKotlin\n*S Kotlin\n*F\n+ 1 A.kt\na/A\n*L\n{own}\n{library}\n"
    debug += "*S KotlinDebug\n*F\n+ 1 A.kt\na/A\n*L\n26#1:34,6\n21#1,2:40\n*E\n"
    assert [calling_line(debug, line) for line in (33, 34, 39, 40, 41, 42)] == [33, 26, 26, 21, 22, 42]
    assert calling_line("", 5) == 5


def test_a_line_without_text_is_no_location() -> None:
    assert line_location(SourceText("a\n  \n"), 2) is None


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("a.BTest.[engine:junit-jupiter]/[class:a.BTest]/[method:works()]", "a.BTest.works()"),
        (
            "a.BTest.[engine:junit-jupiter]/[class:a.BTest]/[nested-class:In]/[test-template:t(int)]/[test-template-invocation:#1]",
            "a.BTest.In.t(int).#1",
        ),
        ("a.BTest.works(a.BTest)", "a.BTest.works"),
        ("a.BTest._", "a.BTest"),
    ],
)
def test_names_of_tests_are_those_that_people_write(name: str, readable: str) -> None:
    assert readable_name(name) == readable


def test_of_a_class_of_testng_that_kills_the_methods_are_named() -> None:
    assert killing_tests(["a.BTest.works", "a.BTest._", "a.CTest._"]) == ("a.BTest.works", "a.CTest")


@pytest.mark.parametrize(
    ("names", "run", "expected"),
    [
        (["a.BTest.x(a.BTest)"], 1, True),
        (["a.BTest.x(a.BTest)"], 2, False),
        (["a.BTest._"], 3, True),
        (["a.BTest._"], 1, False),
    ],
)
def test_a_survivor_counts_when_each_of_its_tests_was_run(names: list[str], run: int, expected: bool) -> None:
    assert all_ran(names, run) == expected


def test_tests_that_fail_without_a_mutant_are_named_once() -> None:
    five = "Description [testClass=a.BTest, name=[engine:junit-jupiter]/[class:a.BTest]/[method:works()]]"
    four = "Description [testClass=a.CTest, name=works(a.CTest)]"
    printed = f"{five} did not pass without mutation.\nTests failing without mutation: \n{five}\n{four}"
    assert failing_tests(printed) == ("a.BTest.works()", "a.CTest.works")


def test_every_status_of_pit_has_one_of_the_protocol() -> None:
    mutant = Mutant("C.java", "M", Location(Position(1, 1), Position(1, 2)), "x")
    for status, expected in STATUSES.items():
        found = result(mutant, ["a.T"], {"status": status, "exit": "OK", "killing": ["a.T.x(a.T)"], "run": 3})
        assert (found.status, found.killed_by, found.covered_by) == (expected, ("a.T.x",), ("a.T",))
        assert (found.status_reason is None) == (expected in (Status.KILLED, Status.SURVIVED, Status.NO_COVERAGE))


def test_an_error_in_the_jvm_of_the_tests_is_the_reason() -> None:
    mutant = Mutant("C.java", "M", Location(Position(1, 1), Position(1, 2)), "x")
    answer = {"status": "RUN_ERROR", "exit": "UNKNOWN_ERROR", "killing": [], "run": 0}
    said = [result(mutant, ["a.T"], {**answer, "error": error}).status_reason for error in (None, "java.lang.E:\n no")]
    ended = "the JVM of the tests ended, or could not be started (exit UNKNOWN_ERROR)"
    assert said == [ended, f"{ended}: java.lang.E: no"]


def test_a_module_is_asked_if_a_file_of_it_may_be_in_scope() -> None:
    assert concerns(Scope(), "a")
    assert concerns(Scope(frozenset(["x.java"])), "")
    assert concerns(Scope(frozenset(["a/"])), "a/b")
    assert concerns(Scope(frozenset(["a/b/src/C.java"])), "a/b")
    assert not concerns(Scope(frozenset(["a/bc/C.java"])), "a/b")


def test_of_what_maven_prints_the_errors_are_shown_with_paths_of_the_project(tmp_path: Path) -> None:
    printed = (
        f"noise\n\x1b[0m[ERROR] COMPILATION ERROR : \n[ERROR] {tmp_path.resolve()}/src/A.java:[3,1] cannot find symbol\n"
        "  symbol:   method no(int)\n  location: class A\n"
        "[ERROR] Failed to execute goal x: Compilation failure\n[ERROR] -> [Help 1]\n"
    )
    assert shown(printed, tmp_path) == "src/A.java:[3,1] cannot find symbol method no(int)"
    assert shown("killed", tmp_path) == "killed"
    progress = "/-\\|\x1b[0m[ERROR] Failed to execute goal x: 1 tests did not pass\n[ERROR] See https://pitest.org\n"
    assert shown(progress, tmp_path).startswith("Failed to execute goal x: 1 tests did not pass")
    colours = "\x1b[0m\x1b[0m[ERROR] Failed to execute goal x: no licence\n[ERROR] \n[ERROR] To see more\n"
    assert shown(colours, tmp_path).startswith("Failed to execute goal x: no licence")


@pytest.mark.parametrize(
    ("files", "settings", "detected"),
    [
        ({"pom.xml": "<artifactId>pitest-maven</artifactId>"}, {}, True),
        ({"pom.xml": "<module> sub </module>", "sub/pom.xml": "pitest-maven"}, {}, True),
        ({"pom.xml": "<module>../sub</module><module>.</module>"}, {}, False),
        ({"pom.xml": "<project/>"}, {}, False),
        ({"pom.xml": "<project/>"}, {"version": "1.25.9"}, True),
        ({}, {"version": "1.25.9"}, False),
    ],
)
def test_a_project_has_the_plugin_in_a_pom_or_a_version_in_the_settings(
    tmp_path: Path, files: dict[str, str], settings: dict[str, Any], detected: bool
) -> None:
    written(tmp_path, files)
    project = Project(root=tmp_path, cache=tmp_path / "cache", settings=settings)
    assert (Pit.detect(project) is not None) == detected
    assert Pit.absent(project).good is False


def test_a_build_of_gradle_is_said_to_be_none_that_is_supported(tmp_path: Path) -> None:
    project = Project(root=tmp_path, cache=tmp_path / "cache")
    assert "Gradle" not in Pit.absent(project).text
    (tmp_path / "build.gradle.kts").touch()
    assert Pit.absent(project).text.endswith("Gradle is not supported")


def test_a_module_belongs_to_the_project_around_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for place in (tmp_path, tmp_path / "sub"):
        (place / "pom.xml").write_text("pitest-maven", "utf-8")
    assert Pit.detect(Project(root=tmp_path / "sub", cache=tmp_path / "cache", nested=True)) is None
    with pytest.raises(ConfigurationError, match=r"pit.version is 1.25"):
        Pit.detect(Project(root=tmp_path, cache=tmp_path / "cache", settings={"version": 1.25}))


@pytest.mark.parametrize(("root", "cache"), [("shop", "o'brien"), ("bob's", "bob's-1a2b")])
async def test_a_cache_through_which_pit_finds_no_tests_is_refused(tmp_path: Path, root: str, cache: str) -> None:
    builds = Builds(Project(root=tmp_path / root, cache=tmp_path / cache), None)
    remedy = "set MSP_BRIDGE_CACHE to" if root == "shop" else f"rename {tmp_path / root}"
    with pytest.raises(ConfigurationError, match=f"{cache}, whose name has a quotation mark: {remedy}"):
        async with builds.current():
            pass
