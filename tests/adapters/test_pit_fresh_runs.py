"""How PIT's plug-in for Maven is told which mutants to test, and what its report says: without a JVM."""

import asyncio
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from attrs import evolve
from msp_bridge.adapters.pit import fresh_runs, plugin_runs
from msp_bridge.adapters.pit.configuration import ModuleConfiguration, configurations
from msp_bridge.adapters.pit.fresh_runs import PREPARING, TESTED, TESTING, Chosen, fresh_answers
from msp_bridge.adapters.pit.maven import Module
from msp_bridge.adapters.pit.plugin_runs import EXECUTION, REPORTS
from msp_bridge.adapters.pit.tool import JUNIT5_PLUGIN, Tool
from support.cancelling import cancelled
from support.environments import program
from support.servers import until

from msp_bridge import phases
from msp_bridge.adapter import Location, Mutant, Position, Result, Status, ToolError
from msp_bridge.testing import RunningProcesses, TreeState

PROLOG = '<?xml version="1.0" encoding="ISO-8859-1"?>\n<!-- A licence, with a <project> in it: é -->\n'
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://maven.apache.org/POM/4.0.0 https://maven.apache.org/xsd/maven-4.0.0.xsd">
  <artifactId>shop</artifactId><name>café</name>
  <build><directory>{root}/target</directory><outputDirectory>{root}/target/classes</outputDirectory>
    <testOutputDirectory>{root}/target/test-classes</testOutputDirectory>
    <plugins><plugin><artifactId>pitest-maven</artifactId><configuration>
      <excludedMethods><param>toString</param></excludedMethods><targetClasses>a.*</targetClasses><argLine>-ea</argLine>
    </configuration></plugin></plugins>
  </build>
</project>"""
MATH = "org.pitest.mutationtest.engine.gregor.mutators.MathMutator"
KEYS = [
    f"a.B$C.{method}([Ljava/lang/String;)V[{indexes}]{MATH}"
    for method in ("sum", "<init>")
    for indexes in ("5, 9", "7")
]
OTHER = f"a.D.more()I[1]{MATH}"
Heard = Callable[[bytes], object]
MUTANT = Mutant("B.java", "Math", Location(Position(1, 1), Position(1, 2)), "-")
RESULT = Result(MUTANT, Status.KILLED, killed_by=("a.BTest.t",))
SIGNATURE = f"methodDesc=([Ljava/lang/String;)V], indexes=[7], mutator={MATH}]"
REPORT = f"""<?xml version="1.0" encoding="UTF-8"?>
<mutations partial="true">
<mutation detected='true' status='KILLED' numberOfTestsRun='2'><mutatedClass>a.B$C</mutatedClass>
<mutatedMethod>sum</mutatedMethod><methodDescription>([Ljava/lang/String;)V</methodDescription><mutator>{MATH}</mutator>
<indexes><index>5</index><index>9</index></indexes><killingTest>a.BTest.t(a.BTest)</killingTest></mutation>
<mutation detected='false' status='SURVIVED' numberOfTestsRun='3'><mutatedClass>a.B$C</mutatedClass>
<mutatedMethod>&#60;init&#62;</mutatedMethod><methodDescription>([Ljava/lang/String;)V</methodDescription>
<mutator>{MATH}</mutator><indexes><index>7</index></indexes><killingTest/></mutation>
</mutations>"""


def configured(root: Path) -> ModuleConfiguration:
    [found] = configurations(POM.format(root=root), "1.25.9")
    return evolve(found, version="1.25.9")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / "target").mkdir(parents=True)
    (root / "target" / "stale").write_text("of an earlier build")
    (root / "pom.xml").write_bytes((PROLOG + POM.format(root=root)).encode("latin-1"))
    return root


def chosen(root: Path, *keys: str) -> Chosen:
    program = root.parent / "program"
    write(program / "org" / "A.class", "")
    return Chosen(Module("", configured(root), ()), dict.fromkeys(keys, RESULT), Tool((), program))


async def fresh(root: Path, *asked: Chosen, jobs: int = 1) -> dict[tuple[str, str], dict[str, Any]]:
    return await fresh_answers(root, [each.module for each in asked], asked, jobs)


async def test_the_plug_in_tests_a_sample_in_a_fresh_copy(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, poms, called, packed, said = TreeState.of(root), [], [], {}, []
    monkeypatch.setattr(phases, "BRIEF_S", 0)
    monkeypatch.setattr(phases, "EVERY_S", 0)

    async def run(copy: Path, what: str, *arguments: str, heard: Heard) -> None:
        called.append((what, arguments))
        for piece in (b"- ", TESTED[:9], TESTED[9:] + b"\n\x08/" + TESTED + b"\n"):
            heard(piece)
        jar = ElementTree.parse(copy / "pom.xml").findtext(".//dependency/systemPath")
        with zipfile.ZipFile(jar or "") as sample:
            packed.update({name: sample.read(name).decode() for name in sample.namelist()})
        assert not (copy / "target").exists()
        assert copy != root
        poms.append((copy / "pom.xml").read_bytes())
        write(copy / REPORTS / "mutations.xml", REPORT)

    monkeypatch.setattr(plugin_runs, "run", run)
    with phases.heard_by(lambda report: said.append(str(report))):
        answers = await fresh(root, chosen(root, KEYS[0], KEYS[3]), jobs=3)
    assert {key: (answer["status"], answer["killing"], answer["run"]) for key, answer in answers.items()} == {
        ("", KEYS[0]): ("KILLED", ["a.BTest.t(a.BTest)"], 2),
        ("", KEYS[3]): ("SURVIVED", [], 3),
    }
    goal = f"org.pitest:pitest-maven:1.25.9:mutationCoverage@{EXECUTION}"
    assert called == [(f"pitest:mutationCoverage@{EXECUTION}", ("test-compile", goal))]
    assert poms[0].startswith(PROLOG.encode("latin-1"))
    project = ElementTree.fromstring(poms[0])
    assert project.findtext("name") == "café"
    [plugin] = project.iter("plugin")
    assert plugin.findtext("version") == "1.25.9"
    configuration = plugin.find("executions/execution/configuration")
    assert configuration is not None
    assert configuration.findtext("mutationUnitSize") == "1"
    assert configuration.findtext("threads") == "3"
    assert [each.text for each in configuration.findall("targetClasses/param")] == ["a.B$C"]
    assert configuration.find("excludedMethods") is None  # it is as the pom says
    assert [each.text for each in configuration.findall("features/param")] == ["+EXPORT", "+MSP_BRIDGE"]
    assert [each.text for each in configuration.findall("jvmArgs/param")] == ["-XX:TieredStopAtLevel=1", "-ea"]
    assert packed["msp-bridge-keys"].split("\n") == [KEYS[0], KEYS[3]]
    assert "org/A.class" in packed
    assert [text for name, text in packed.items() if name.startswith("META-INF/services/")] == ["SampledMutants"] * 2
    assert [said[0], said[-1]] == [PREPARING, f"{TESTING}: 2 of 2"]
    assert {each.get("combine.self") for each in configuration} == {"override"}
    assert TreeState.of(root) == before


async def test_modules_of_another_version_of_pit_are_skipped_meanwhile(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module whose pom does not name PIT gets the plug-in for its tests, as in the run."""
    (root / "old").mkdir()
    (root / "old" / "pom.xml").write_text("<project/>")
    plain = evolve(configured(root), version="1.17.0", in_pom=False)
    old = Module("old", plain, ("/m2/junit-platform-engine-1.10.2.jar",))
    skipped = []

    async def run(copy: Path, what: str, *arguments: str, heard: Heard) -> None:
        pair = [ElementTree.parse(copy / name / "pom.xml") for name in ("", "old")]
        skipped.append([pom.findtext(".//execution/configuration/skip") for pom in pair])
        assert [len(pom.findall(".//execution")) for pom in pair] == [1, 1]
        assert pair[1].findtext(".//dependency/artifactId") == JUNIT5_PLUGIN.name

    monkeypatch.setattr(plugin_runs, "run", run)
    here = chosen(root, KEYS[0])
    assert await fresh(root, here, Chosen(old, {OTHER: RESULT}, here.tool)) == {}
    assert skipped == [["true", None], [None, "true"]]


async def test_modules_that_are_tested_together_have_samples_of_their_own(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Maven takes a plug-in of another module for the same one, if artifacts of the same names and versions go with it."""
    (root / "other").mkdir()
    (root / "other" / "pom.xml").write_text("<project/>")
    samples: dict[str, str] = {}

    async def run(copy: Path, what: str, *arguments: str, heard: Heard) -> None:
        for name in ("", "other"):
            [sample] = ElementTree.parse(copy / name / "pom.xml").iterfind(".//dependency[systemPath]")
            with zipfile.ZipFile(sample.findtext("systemPath") or "") as jar:
                samples["".join(each.text or "" for each in sample[:3])] = jar.read("msp-bridge-keys").decode()

    monkeypatch.setattr(plugin_runs, "run", run)
    here = chosen(root, KEYS[0])
    await fresh(root, here, Chosen(Module("other", configured(root), ()), {OTHER: RESULT}, here.tool))
    assert list(samples.values()) == [KEYS[0], OTHER]


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        ("passes, fails", "KILLED"),
        ("passes, hangs", "TIMED_OUT"),
        # Those of all test classes, which need what others leave; or they decide nothing, and it is as PIT says.
        ("passes, passes, passes, fails", "KILLED"),
        ("passes, passes, passes, passes", "SURVIVED"),
        ("passes, breaks, passes, fails", "KILLED"),
        ("passes, breaks, passes, breaks", "SURVIVED"),
        ("fails, passes, fails", "KILLED"),
        ("fails, fails", "SURVIVED"),
        ("has no mutants, has no mutants", "SURVIVED"),
    ],
)
async def test_where_pit_contradicts_a_result_its_tests_of_the_mutated_class_decide(
    root: Path, monkeypatch: pytest.MonkeyPatch, outcomes: str, status: str
) -> None:
    """PIT says Survived, and a test of `a.BTest` has killed the mutant in the run."""
    coming, seen = iter(["passes", *outcomes.split(", ")]), []

    async def run(copy: Path, what: str, *arguments: str, heard: Heard) -> None:
        compiled = copy / "target" / "classes" / "a" / "B$C.class"
        if not compiled.exists():
            write(compiled, "project's")
            write(copy / "target" / "test-classes" / "a" / "BTest.class", "")
            export = copy / REPORTS / "export" / "a" / "B$C" / "mutants" / "0"
            write(
                export / "details.txt",
                f"MutationDetails [id=[location=Location [clazz=a.B$C, method=<init>, {SIGNATURE}",
            )
            write(export / "a.B$C.class", "mutant's")
        configuration = ElementTree.parse(copy / "pom.xml").find(".//execution/configuration")
        assert configuration is not None
        tests = [each.text for each in configuration.findall("targetTests/param")]
        assert configuration.findtext("skipFailingTests") == (None if not seen else "false")  # else none would fail
        seen.append((compiled.read_text(), tests, "-Dmaven.main.skip=true" in arguments))
        outcome = next(coming)
        if outcome in ("fails", "breaks"):
            raise ToolError("1 tests did not pass without mutation" if outcome == "fails" else "no memory")
        if outcome == "hangs":
            await asyncio.sleep(60)
        write(copy / REPORTS / "mutations.xml", REPORT if outcome == "passes" else "<mutations/>")

    monkeypatch.setattr(plugin_runs, "run", run)
    monkeypatch.setattr(fresh_runs, "TIMEOUT_MARGIN_S", 0.2)
    answers = await fresh(root, chosen(root, KEYS[3]))
    assert answers["", KEYS[3]]["status"] == status
    assert seen[0] == ("project's", [], False)
    own, whole = [[(text, tests, True) for text in ("project's", "mutant's")] for tests in (["a.BTest"], [])]
    left = {"passes, fails": own, "passes, hangs": own, "fails, passes, fails": [own[0], *whole]}
    controls = [own[0], whole[0]]
    assert seen[1:] == left.get(outcomes, controls if outcomes.startswith(("fails", "has")) else [*own, *whole])


async def test_a_cancel_ends_maven_and_all_that_it_has_started_and_erases_the_copy(root: Path, temporary: Path) -> None:
    program(root / "mvnw", f"sleep 1000 & touch {root.parent / 'began'}; wait")
    running = RunningProcesses()
    verifying = asyncio.create_task(fresh(root, chosen(root, KEYS[0])))
    await until((root.parent / "began").exists)
    await cancelled(verifying)
    assert verifying.cancelled()
    assert await running.settled(0) == []
    assert list(temporary.iterdir()) == []


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


async def test_a_report_that_is_no_xml_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(copy: Path, what: str, *arguments: str, heard: Heard) -> None:
        write(copy / REPORTS / "mutations.xml", "<mutations>")

    monkeypatch.setattr(plugin_runs, "run", run)
    with pytest.raises(ToolError, match="PIT's report can't be read"):
        await fresh(root, chosen(root, KEYS[0]))
