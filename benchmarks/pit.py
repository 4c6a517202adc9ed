"""PIT on a library of Java: the tool alone, and through the bridge, with as many threads as the machine has processors.

The library is what Maven Central has of it: its pom, its sources and those of its tests. The pom gets PIT's plug-in,
with some of the classes as its target, so that a round takes minutes; all tests run.
Both sides compile it. "For its class" is the tool's run for the first class of which a test kills a mutant.
"""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.client import Client, ServerFailed, run, selected
from benchmarks.laboratory import Laboratory, RealProject, SetUpFailed
from benchmarks.measuring import Comparison, Series, Values, alternate, compare, cpu_of_tree, series

ROUNDS = 1
GROUP, ARTIFACT, VERSION = "org.apache.commons", "commons-csv", "1.10.0"
PIT, JUNIT5_PLUGIN = "1.25.9", "1.2.1"
TARGETS = ("Lexer", "CSVRecord", "ExtendedBufferedReader")
ALONE = "pitest-maven"
AT_MOST = "\N{LESS-THAN OR EQUAL TO}"
STATUSES = {
    "KILLED": "Killed",
    "SURVIVED": "Survived",
    "NO_COVERAGE": "NoCoverage",
    "TIMED_OUT": "Timeout",
    "NON_VIABLE": "CompileError",
}
PLUGIN = f"""<plugin><groupId>org.pitest</groupId><artifactId>pitest-maven</artifactId><version>{PIT}</version>
<configuration><targetClasses>{",".join(f"org.apache.commons.csv.{name}" for name in TARGETS)}</targetClasses>
<threads>{os.cpu_count()}</threads><outputFormats><param>XML</param></outputFormats>
<timestampedReports>false</timestampedReports></configuration>
<dependencies><dependency><groupId>org.pitest</groupId><artifactId>pitest-junit5-plugin</artifactId>
<version>{JUNIT5_PLUGIN}</version></dependency></dependencies></plugin>"""
PLUGINS = re.compile(r"(?=</plugins>\s*</build>)")


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """Everything from nothing, in turns; then one mutant again, after edits, and in a new server."""
    if shutil.which("mvn") is None or shutil.which("javac") is None:
        raise SetUpFailed("`mvn` and a JDK are needed: install Maven, and JDK 11 or newer")
    bridge = laboratory.bridge(project)
    found: dict[str, Counter[str]] = {}
    sides = {"bridge": lambda: _by_bridge(laboratory, bridge, found), ALONE: lambda: _alone(laboratory, found)}
    measured = alternate(rounds or ROUNDS, sides, warm_up=False)
    ours, its = measured["bridge"], measured[ALONE]
    for_class = {
        what: Series([go[what] / other["class s"] for go, other in zip(ours, its, strict=True)])
        for what in ("listed s", "again s")
    }
    whole = {"wall s": f"{AT_MOST} 1.0", "CPU s": f"{AT_MOST} 1.0"}
    return [
        *compare(f"{found['bridge'].total()} mutants, all", measured, "bridge", ALONE, whole),
        Comparison(
            "until the mutants are listed, beside the tool's run for a class",
            "ratio",
            for_class["listed s"],
            aim=f"{AT_MOST} 0.5",
        ),
        Comparison(
            "one mutant again, beside the tool's run for its class", "ratio", for_class["again s"], aim=f"{AT_MOST} 0.1"
        ),
        *(
            Comparison(f"one mutant {what}", metric, series(ours, f"{what} {metric}"))
            for what in ("after an edit of its file", "after an edit of a test", "in a new server")
            for metric in ("s", "CPU s")
        ),
        Comparison("Maven's own test-compile", "CPU s", series(its, "compile CPU s")),
        *(
            Comparison(status, "count", Series([number]), ALONE, Series([found[ALONE][status] or float("nan")]))
            for status, number in sorted(found["bridge"].items())
        ),
    ]


def _by_bridge(laboratory: Laboratory, bridge: Path, found: dict[str, Counter[str]]) -> Values:
    argv: list[str | Path] = [bridge, "serve", "stdio", "--", "--adapter", "pit"]
    values: dict[str, float] = {}
    with _library(laboratory) as root, laboratory.directory() as cache:
        env = {"MSP_BRIDGE_CACHE": str(cache)}
        with Client.of(argv, root, env) as client:
            client.request("configure", {})
            listed, _ = client.timed("discover", {})
            tested, results = client.timed("mutationTest", {})
            values |= {"listed s": listed, "wall s": listed + tested, "CPU s": cpu_of_tree(client.pid)}
            killed = next(result for result in results if result[1]["status"] == "Killed")
            request = {"mutants": selected(killed)}
            values["again s"], _ = client.timed("mutationTest", request)
            test = next(root.glob(f"src/test/java/**/{Path(killed[0]).stem}Test.java"))
            for what, file in (("of its file", root / killed[0]), ("of a test", test)):
                before = cpu_of_tree(client.pid)
                text = file.read_text("utf-8").rstrip().removesuffix("}")
                file.write_text(text + "\n    static int edited() {\n        return 1;\n    }\n}\n", "utf-8")
                values[f"after an edit {what} s"], _ = client.timed("mutationTest", request)
                values[f"after an edit {what} CPU s"] = cpu_of_tree(client.pid) - before
        with Client.of(argv, root, env) as client:
            client.request("configure", {})
            values["in a new server s"], _ = client.timed("mutationTest", request)
            values["in a new server CPU s"] = cpu_of_tree(client.pid)
    found["bridge"] = Counter(mutant["status"] for _, mutant in results)
    return values


def _alone(laboratory: Laboratory, found: dict[str, Counter[str]]) -> Values:
    with _library(laboratory) as root:
        maven = ["mvn", "--batch-mode", "--quiet"]
        compiled, _ = run([*maven, "test-compile"], root)
        shutil.rmtree(root / "target")
        goals = [*maven, "test-compile", "org.pitest:pitest-maven:mutationCoverage"]
        whole, _ = run(goals, root)
        mutations = ElementTree.parse(root / "target" / "pit-reports" / "mutations.xml").getroot()
        killed = next(each for each in mutations if each.get("status") == "KILLED")
        one_class, _ = run([*goals, f"-DtargetClasses={killed.findtext('mutatedClass')}"], root)
    found[ALONE] = Counter(STATUSES.get(each.get("status", ""), "RuntimeError") for each in mutations)
    return {"wall s": whole.wall, "CPU s": whole.cpu, "class s": one_class.wall, "compile CPU s": compiled.cpu}


@contextmanager
def _library(laboratory: Laboratory) -> Iterator[Path]:
    """A copy of the library, whose files Maven downloads once."""
    kept = laboratory.home / "java" / f"{ARTIFACT}-{VERSION}"
    for kind in ("pom", "jar:sources", "jar:test-sources"):
        artifact = f"-Dartifact={GROUP}:{ARTIFACT}:{VERSION}:{kind}"
        if len(list(kept.glob("*"))) < 3:
            kept.mkdir(parents=True, exist_ok=True)
            try:
                run(["mvn", "--batch-mode", "--quiet", "dependency:copy", artifact, f"-DoutputDirectory={kept}"], kept)
            except ServerFailed as error:
                raise SetUpFailed(str(error)) from error
    with laboratory.directory() as parent:
        root = parent / ARTIFACT
        for place, kind in (("main", "sources"), ("test", "test-sources")):
            _unpack(kept / f"{ARTIFACT}-{VERSION}-{kind}.jar", root / "src" / place)
        pom = (kept / f"{ARTIFACT}-{VERSION}.pom").read_text("utf-8")
        (root / "pom.xml").write_text(PLUGINS.sub(PLUGIN, pom, count=1), "utf-8")
        yield root


def _unpack(jar: Path, to: Path) -> None:
    with zipfile.ZipFile(jar) as packed:
        for name in packed.namelist():
            if not name.startswith("META-INF/"):
                packed.extract(name, to / ("java" if name.endswith((".java", "/")) else "resources"))
