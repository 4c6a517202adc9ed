"""What the tests of the PIT adapter share: trees, and adapters on them. Java, Maven and PIT are the real ones."""

import contextlib
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import psutil
import pytest
from msp_bridge.adapters.pit import Pit

from msp_bridge.adapter import Mutant, Result, ToolError
from msp_bridge.testing import RunningProcesses
from support import adapters
from support.adapters import detected
from support.environments import program
from support.files import written

REPOSITORY = Path.home() / ".m2" / "repository"
PIT = REPOSITORY / "org" / "pitest" / "pitest-maven"
REAL = all(shutil.which(name) for name in ("java", "javac", "mvn")) and PIT.is_dir()
needs_pit = pytest.mark.skipif(not REAL, reason="PIT is not installed")  # `make test` gets it, beside a JDK and Maven
UNREACHABLE = re.compile(r"Could not transfer artifact|failed to transfer from|transfer failed for")
JUNIT4 = "<dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version><scope>test</scope></dependency>"


def pit_pom(
    dependencies: str = JUNIT4,
    of_pit: str = "",
    plugins: str = "",
    language: str = "java",
    version: str = "1.25.9",
) -> str:
    """The pom of a project; `of_pit` is what PIT's plug-in has there besides its `version`."""
    return f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example.test</groupId>
  <artifactId>stock</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>11</maven.compiler.source>
    <maven.compiler.target>11</maven.compiler.target>
    <kotlin.compiler.jvmTarget>11</kotlin.compiler.jvmTarget>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>{dependencies}</dependencies>
  <build>
    <sourceDirectory>src/main/{language}</sourceDirectory>
    <testSourceDirectory>src/test/{language}</testSourceDirectory>
    <plugins>{plugins}
      <plugin><groupId>org.pitest</groupId><artifactId>pitest-maven</artifactId><version>{version}</version>
      {of_pit}</plugin>
    </plugins>
  </build>
</project>
"""


MVNW = """# In place of Maven, which takes seconds: what it makes of the project. What is compiled once is kept in BUILDS.
for argument; do case $argument in -Doutput=*) pom=${argument#-Doutput=};; esac; done
build=BUILDS/$(cat $(find src -name '*.java' | sort) | cksum | tr -d ' ')
compile() {
    javac -J-XX:TieredStopAtLevel=1 --release 11 -cp "JARS" -d "$1/classes" $(find src -name '*.java') || exit 1
    for test in $(cd src/test/java && find . -name '*.java'); do
        mkdir -p "$1/test-classes/${test%/*}" && mv "$1/classes/${test%.java}"*.class "$1/test-classes/${test%/*}"
    done
}
sed "s,HERE,$PWD," pom.xml > "$pom"
case " $* " in *" test-compile "*) ;; *) exit;; esac
[ -d "$build" ] || { compile "$build.$$" && mv "$build.$$" "$build"; }
mkdir -p target && cp -R "$build/." target
echo JARS > .msp-bridge-class-path
"""
EFFECTIVE_POM = """<project><artifactId>stock</artifactId><build><directory>HERE/target</directory>
<sourceDirectory>HERE/src/main/java</sourceDirectory>
<outputDirectory>HERE/target/classes</outputDirectory>
<testOutputDirectory>HERE/target/test-classes</testOutputDirectory>
<plugins><plugin><artifactId>pitest-maven</artifactId><version>1.25.9</version></plugin></plugins></build></project>
"""

SMALLEST = {
    "src/main/java/f/F.java": "package f;\n\nclass F {\n    static int f(int a) {\n        return a + 1;\n    }\n}\n",
    "src/test/java/f/FTest.java": """package f;

public class FTest {
    @org.junit.Test
    public void f() {
        org.junit.Assert.assertEquals(2, F.f(1));
    }
}
""",
}


SOURCES, TESTS = "src/main/java/example/stock", "src/test/java/example/stock"
CLASS = """package example.stock;

final class {name} {{
    private static Integer known;

    static int twice(int price) {{
        return price * 2;
    }}

    static int once() {{
        if (known == null) {{
            known = made(3);
        }}
        return known;
    }}

    static int made(int price) {{
        return price + 1;
    }}

    static int never(int price) {{
        return price - 1;
    }}

    private static final int FACTOR = factor();

    private static int factor() {{
        return 2;
    }}
}}
"""
TEST = """package example.stock;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.Assert;
import org.junit.Test;

public class {name} {{
    @Test
    public void passes() throws Exception {{
        {body}
    }}
}}
"""


def stock(classes: Iterable[str], tests: Mapping[str, str]) -> dict[str, str]:
    """The files of classes that are all alike, and of tests with these bodies."""
    files = {f"{SOURCES}/{name}.java": CLASS.format(name=name) for name in classes}
    return files | {f"{TESTS}/{name}.java": TEST.format(name=name, body=body) for name, body in tests.items()}


def smallest(to: Path) -> Path:
    """A class, a test of it, and a script in the place of Maven."""
    return without_maven(written(to / "project", SMALLEST))


def without_maven(root: Path) -> Path:
    """Have the project of one module, with JUnit 4, be compiled by a script."""
    names = "junit/junit/4.13.2/junit-4.13.2.jar", "org/hamcrest/hamcrest-core/1.3/hamcrest-core-1.3.jar"
    jars, builds = ":".join(str(REPOSITORY / name) for name in names), root.parent / "builds"
    builds.mkdir()
    (root / "pom.xml").write_text(EFFECTIVE_POM, "utf-8")
    program(root / "mvnw", MVNW.replace("BUILDS", str(builds)).replace("JARS", jars))
    return root


def cache_with(tools: Path, place: Path) -> Path:
    """A new cache in `place`, in which PIT lies as it was resolved and compiled for an earlier test."""
    cache = place / "cache"
    cache.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (cache / "pit").symlink_to(tools)
    return cache


def adapter_on(root: Path, tools: Path, jobs: int = 2) -> AbstractAsyncContextManager[Pit]:
    return detected(Pit, root, cache=cache_with(tools, root.parent), jobs=jobs)


@contextlib.contextmanager
def skipped_where_unreachable() -> Iterator[None]:
    """Around what needs more than `make test` has got: skip the test if Maven finds no network to get it."""
    try:
        yield
    except ToolError as error:
        if UNREACHABLE.search(error.problem):
            pytest.skip(f"Maven can't reach its repository: {error.problem}")
        raise


async def results_of(adapter: Pit, mutants: Sequence[Mutant]) -> dict[str, Result]:
    """Results by "line mutator", and a number where several are the same."""
    results = await adapters.results_of(adapter, mutants)
    assert len(results) == len({result.mutant for result in results})
    return {key(result.mutant): result for result in results}


def key(mutant: Mutant) -> str:
    number = mutant.replacement.removeprefix(mutant.description or "")
    return f"{mutant.location.start.line} {mutant.mutator.removesuffix('Mutator')}{number}"


def processes(running: RunningProcesses, main: str) -> list[int]:
    """The ids of the living JVMs that run the class `main`."""
    found = []
    for process in running.look():
        with contextlib.suppress(psutil.Error):
            command = process.cmdline()
            if any(each.endswith(main) for each in command) and "java" in Path(command[0]).name:
                found.append(process.pid)
    return found
