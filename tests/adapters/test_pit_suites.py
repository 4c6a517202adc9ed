"""Tests that use, or need, what others leave in static fields: all tests of the module decide, in their order."""

from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.pit.suites import Suite, leaves_the_same
from support.adapters import discovered
from support.files import written
from support.java_trees import adapter_on, key, needs_pit, results_of, without_maven

from msp_bridge.adapter import Status

SOURCE = """package f;

import java.util.HashMap;
import java.util.Map;

final class F {
    static int depth;
    private static Map<String, Integer> known;
    private static final ThreadLocal<Integer> LOCAL = new ThreadLocal<>();

    static int known() {
        if (known == null) {
            known = new HashMap<>(Map.of("a", made(3)));
        }
        return known.get("a");
    }

    private static int made(int from) {
        return from + 1;
    }

    static void enter() {
        depth++;
    }

    static void leave() {
        depth--;
    }

    static int twice(int a) {
        return a * 2;
    }

    static int half(int a) {
        return a / 2;
    }

    static void set(int a) {
        LOCAL.set(a - 3);
    }

    static int local() {
        return LOCAL.get();
    }

    static void tell(int a) {
        System.setProperty("told", "" + (a % 5));
    }

    static int more(int a) {
        return a << 1;
    }
}
"""
TEST = """package f;

public class {name} {{
    @org.junit.Test
    public void t() {{
        {body}
    }}

    static void equal(Object expected, Object found) {{
        if (!expected.equals(found)) {{
            throw new AssertionError(found);
        }}
    }}
}}
"""
READY = 'equal("yes", System.getProperty("ready"));'  # fails alone
TESTS = {
    "ATest": 'F.known(); F.enter(); F.leave(); F.set(10); F.tell(7); System.setProperty("ready", "yes");',
    "AATest": 'equal("no", System.getProperty("dirty", "no")); F.more(1);',
    "FTest": 'F.more(1); System.setProperty("dirty", "yes");',  # PIT runs it first, since it is named as the class
    "BTest": f"{READY} F.twice(4);",
    "CTest": f"{READY} equal(2, F.half(4));",
    "DTest": 'equal(4, F.known()); equal(0, F.depth); equal(7, F.local()); equal("2", System.getProperty("told"));',
}
VERDICTS = {
    "19 Math": "DTest",  # of what is computed once
    "23 Math": "DTest",  # of a count that a test leaves as it was
    "27 Math": "DTest",
    "31 Math": None,
    "35 Math": "CTest",
    "39 Math": "DTest",
    "47 Math": "DTest",
    "51 Math": None,
}


def files() -> dict[str, str]:
    tests = {name: TEST.format(name=name, body=body) for name, body in TESTS.items()}
    return {"src/main/java/f/F.java": SOURCE} | {f"src/test/java/f/{name}.java": text for name, text in tests.items()}


@needs_pit
async def test_all_tests_decide_on_what_covering_tests_leave_to_others_or_need_of_them(
    tmp_path: Path, pit_tools: Path
) -> None:
    root = without_maven(written(tmp_path / "project", files()))
    async with adapter_on(root, pit_tools) as adapter:
        mutants = [mutant for mutant in await discovered(adapter) if key(mutant) in VERDICTS]
        results = await results_of(adapter, mutants)
    killed = {name: None if test is None else (f"f.{test}.t",) for name, test in VERDICTS.items()}
    assert {name: result.killed_by for name, result in results.items()} == killed
    statuses = {name: Status.SURVIVED if test is None else Status.KILLED for name, test in VERDICTS.items()}
    assert {name: result.status for name, result in results.items()} == statuses
    assert results["19 Math"].covered_by == ("f.ATest.t",)


SAME = {"status": "SURVIVED", "changed": [], "left": {"f.F": 1, "": 2}}


@pytest.mark.parametrize(
    ("answer", "control", "is_same"),
    [
        (SAME, {"left": {"f.F": 1, "f.More": 3, "": 2}}, True),  # which the covering tests do not load
        (SAME, {"changed": ["threads"]}, True),
        (SAME, {"changed": ["loggers"]}, False),
        (SAME, {"left": {"f.F": 2, "": 2}}, False),
        (SAME, {"left": {"": 2}}, False),
        (SAME, {"left": None}, False),  # it could not be read
        (SAME | {"left": None}, {}, False),
        (SAME | {"changed": ["threads"]}, {}, False),
        ({"open": True, "changed": []}, {}, False),
    ],
)
def test_all_tests_need_not_run_where_nothing_else_is_left(
    answer: dict[str, Any], control: dict[str, Any], is_same: bool
) -> None:
    assert leaves_the_same(answer, {"left": SAME["left"], "changed": [], **control}) is is_same


class SayingTesters:
    """In place of testers: each run with the mutant has the next of `answers`."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers, self.asked = list(answers), list[Any]()

    async def test(self, _: str, *, suite: Any, **question: Any) -> dict[str, Any]:
        if not question:
            return {"failing": [], "ms": 1, "changed": [], "uncovered": ["STest"]}
        self.asked.append(suite)
        return self.answers.pop(0)


LATE: dict[str, Any] = {"changed": ["TIMEOUT"]}
KILLED: dict[str, Any] = {"status": "KILLED", "changed": [], "killing": ["S.t"]}


@pytest.mark.parametrize(
    ("answer", "answers", "status", "suite"),
    [
        (SAME, [LATE, LATE], "TIMED_OUT", ["ATest", "STest"]),
        (SAME, [LATE, KILLED], "KILLED", ["ATest", "STest"]),
        ({"status": "NO_COVERAGE"}, [LATE, LATE], "TIMED_OUT", ["STest"]),
        ({"status": "NO_COVERAGE"}, [KILLED], "KILLED", ["STest"]),
        ({"status": "NO_COVERAGE"}, [SAME], None, ["STest"]),
        ({"status": "NO_COVERAGE"}, [{"changed": []}], None, ["STest"]),
    ],
)
async def test_tests_that_do_not_end_twice_are_a_time_out(
    answer: dict[str, Any], answers: list[dict[str, Any]], status: str | None, suite: list[str]
) -> None:
    testers: Any = SayingTesters(*answers)
    found = await Suite(testers, ["ATest", "STest"]).verdict("arguments", answer)
    assert (found.get("status"), testers.asked) == (status, [suite] * len(answers))
