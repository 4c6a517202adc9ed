"""JVMs that tests start run the mutant, and their tests decide on it: with the real PIT."""

from pathlib import Path

import pytest
from support.adapters import discovered
from support.files import written
from support.java_trees import adapter_on, key, needs_pit, results_of, without_maven

from msp_bridge.adapter import Result

pytestmark = needs_pit
SOURCE = """package f;

final class F {
    public static void main(String[] names) {
        System.out.print(names[0].equals("sum") ? sum(5, 2) : names[0].equals("twice") ? twice(3) : half(4));
    }

    static int sum(int a, int b) {
        return a + b;
    }

    static int twice(int a) {
        return a * 2;
    }

    static int half(int a) {
        return a / 2;
    }

    static int never(int a) {
        return a - 1;
    }
}
"""
TEST = """package f;

public class {name} {{
    @org.junit.Test
    public void t() throws Exception {{
        {body}
    }}

    static String started(String path, String name) throws Exception {{
        String java = System.getProperty("java.home") + "/bin/java";
        return printed(new ProcessBuilder(java, "-XX:TieredStopAtLevel=1", "-cp", path, "f.F", name).start());
    }}

    static String printed(Process process) throws Exception {{
        return new String(process.getInputStream().readAllBytes());
    }}

    static void equal(Object expected, Object found) {{
        if (!expected.equals(found)) {{
            throw new AssertionError(found);
        }}
    }}
}}
"""
BY_CLASS_PATH = 'System.getProperty("java.class.path")'
TESTS = {
    "ATest": "F.twice(3);",
    "BTest": f'equal("7", started({BY_CLASS_PATH}, "sum")); equal("6", started({BY_CLASS_PATH}, "twice"));',
    "CTest": f'equal("" + F.half(4), started({BY_CLASS_PATH}, "half"));',
}
VERDICTS = {
    "9 Math": ("Killed", ("f.BTest.t",)),  # which no coverage has
    "13 Math": ("Killed", ("f.BTest.t",)),  # which the covering test lets live
    "17 Math": ("Survived", None),  # with which the same is computed there and here
    "21 Math": ("NoCoverage", None),
}


async def verdicts(root: Path, tools: Path) -> dict[str, Result]:
    async with adapter_on(without_maven(root), tools) as adapter:
        mutants = [mutant for mutant in await discovered(adapter) if key(mutant) in VERDICTS]
        return await results_of(adapter, mutants)


def project(root: Path, tests: dict[str, str]) -> Path:
    files = {f"src/test/java/f/{name}.java": TEST.format(name=name, body=body) for name, body in tests.items()}
    return written(root, {"src/main/java/f/F.java": SOURCE} | files)


@pytest.mark.parametrize("isolation", ["", "off"])
async def test_mutants_of_started_jvms_have_the_verdict_of_the_tests(
    tmp_path: Path, pit_tools: Path, isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", isolation)
    results = await verdicts(project(tmp_path / "project", TESTS), pit_tools)
    assert {name: (result.status.value, result.killed_by) for name, result in results.items()} == VERDICTS
    assert [results[name].covered_by for name in ("9 Math", "13 Math", "21 Math")] == [None, ("f.ATest.t",), ()]


async def test_jvms_that_a_script_starts_on_the_compiled_classes_have_the_mutant_where_writes_are_dropped(
    tmp_path: Path, pit_tools: Path
) -> None:
    tests = {"DTest": 'equal("7", printed(new ProcessBuilder("sh", "src/test/f.sh").start()));'}
    root = written(project(tmp_path / "project", tests), {"src/test/f.sh": "java -cp target/classes f.F sum\n"})
    results = await verdicts(root, pit_tools)
    assert results["9 Math"].status.value == "Killed"
