"""What is measured again when Python files have changed since the tests were measured, and the servers are new."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.mutmut_trial import Trial

from msp_bridge.adapter import Status
from msp_bridge.python_engine.programs.baseline import Baseline, Held, bits
from msp_bridge.python_engine.programs.channel import TargetPlan
from msp_bridge.python_engine.programs.file_edit import digest_of
from msp_bridge.python_engine.programs.kept import Changes, KeptSources

SOURCE = """LIMIT = 3


def first(a):
    return a + LIMIT


def second(a):
    return a - 1


def called_at_import():
    return 4


FOUR = called_at_import()
"""
FILES = {
    "pkg/m.py": SOURCE,
    "pkg/late.py": "def third():\n    return 3\n",
    "conftest.py": 'pytest_plugins = ["tests.test_plugin"]  # neither test_a nor test_b\n',
    "tests/test_plugin.py": "def test_plugin(): ...\n",
    "tests/base_cases.py": "import test_b\n",
    "tests/test_a.py": "def test_b(): ...\ndef test_both(): ...\n",
    "tests/test_b.py": "def test_second(): ...\n",
    "tests/test_c.py": "from tests.base_cases import *\ndef test_third(): ...\n",
    "setup.py": "",
}
TESTS = [
    "tests/test_a.py::test_b",  # has the name of a file, and does not mention it
    "tests/test_a.py::test_both",
    "tests/test_b.py::test_second",
    "tests/test_c.py::test_second",
    "tests/test_c.py::test_third",
    "tests/test_plugin.py::test_plugin",
]
LINES = {"pkg/m.py": {"5": "0x3", "9": "0xe"}, "pkg/late.py": {"1": "0x10", "2": "0x10"}}  # first; second; third


def written(directory: Path, files: Mapping[str, str]) -> TargetPlan:
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    digests = {path: digest_of(text.encode()) for path, text in files.items() if path.endswith(".py")}
    sources = tuple(path for path in files if path.startswith("pkg/"))
    return TargetPlan(str(directory), (), sources, (1.0, 15.0), "content", "environment", files=digests)


def kept(directory: Path, changed: Mapping[str, str | None], tests: list[str], **report: object) -> Baseline | None:
    """What is kept of a measurement with this `report`."""
    plan, sources = written(directory, FILES), KeptSources(directory.parent / "sources")
    sources.save(plan)
    now = {path: text for path, text in {**FILES, **changed}.items() if text is not None}
    called = ("called_at_import", now["pkg/m.py"].partition("def called_at_import")[0].count("\n") + 1)
    facts = {"live": [], "suspended": [], "called": [called], "read": False}
    measured = {"durations": dict.fromkeys(range(6), 0.5), "failing": {}, "lines": LINES, "late": ["pkg/late.py"]}
    collected = {"tests": TESTS, "seconds": 0.1, "files": {"pkg/m.py": facts}}
    baseline = Baseline.of({**measured, **report}, collected).with_survivor(SURVIVOR)
    for path in changed.keys() - now.keys():
        (directory / path).unlink()
    return Changes(written(directory, now), plan.files, sources).kept(baseline, tests)


SURVIVOR = ("pkg/m.py", (SOURCE.index("a - 1"), SOURCE.index("a - 1") + 5, "a + 1"))
A, BOTH, B, INHERITED, C, PLUGIN = TESTS
NEW = "tests/test_new.py::test_new"
EDITED = FILES["tests/test_a.py"] + "def test_more(): ...\n"
B_EDITED = "def test_second(): assert True\n"


@pytest.mark.parametrize(
    ("changed", "tests", "again"),
    [
        ({}, TESTS, []),
        ({}, [*TESTS, NEW], [NEW]),  # its name alone is new
        ({"tests/test_new.py": "def test_new(): ..."}, [NEW, *TESTS], [NEW]),
        ({"tests/test_a.py": EDITED}, [*TESTS, "tests/test_a.py::test_more"], [A, BOTH, "tests/test_a.py::test_more"]),
        ({"tests/test_a.py": None}, [B, INHERITED, C, PLUGIN], []),
        ({"tests/test_b.py": B_EDITED}, TESTS, [B, INHERITED, C]),  # by way of base_cases
        ({"tests/test_plugin.py": "def test_plugin(): assert True\n"}, TESTS, None),  # conftest.py mentions it
        ({"conftest.py": ""}, TESTS, None),
        ({"tests/base_cases.py": ""}, TESTS, None),  # it has no tests
        ({"tests/conftest.py": ""}, TESTS, None),
        ({"setup.py": "import os"}, TESTS, None),
        ({"pkg/m.py": SOURCE.replace("a + LIMIT", "LIMIT + a")}, TESTS, [A, BOTH]),
        ({"pkg/m.py": "# new\n" + SOURCE.replace("a - 1", "a - 2")}, TESTS, [BOTH, B, INHERITED]),
        ({"pkg/m.py": "# new\n" + SOURCE.replace("return 4", "return 5")}, TESTS, None),
        ({"pkg/m.py": SOURCE.replace("LIMIT = 3", "LIMIT = 4")}, TESTS, None),
        ({"pkg/m.py": SOURCE.replace("first(a)", "first(a, b=1)")}, TESTS, None),
        ({"pkg/m.py": SOURCE + "("}, TESTS, None),
        ({"pkg/late.py": FILES["pkg/late.py"].replace("3", "5")}, TESTS, [C]),
        (
            {"pkg/m.py": SOURCE.replace("a + LIMIT", "LIMIT + a"), "tests/test_b.py": B_EDITED},
            TESTS,
            [A, BOTH, B, INHERITED, C],
        ),
    ],
)
def test_what_is_measured_again(
    tmp_path: Path, changed: dict[str, str | None], tests: list[str], again: list[str] | None
) -> None:
    found = kept(tmp_path / "project", changed, tests)
    assert (found and [tests[test] for test in bits(found.unmeasured)]) == again


def test_tests_that_start_processes_are_measured_again_with_each_change(tmp_path: Path) -> None:
    found = kept(tmp_path / "project", {"tests/test_a.py": EDITED}, TESTS, subprocess_tests="0x10")
    assert found is not None
    assert [TESTS[test] for test in bits(found.unmeasured)] == [A, BOTH, C]


def test_what_was_measured_is_kept_at_its_new_lines(tmp_path: Path) -> None:
    changed = {
        "pkg/m.py": "# new\n" + SOURCE.replace("a + LIMIT", "LIMIT + a"),
        "tests/test_new.py": "def test_new(): ...",
    }
    found = kept(tmp_path / "project", changed, [NEW, *TESTS])
    assert found is not None
    assert found.lines["pkg/m.py"] == {10: 0b11100}
    assert found.durations == [0.0, *[0.5] * 6]
    path, (start, end, replacement) = SURVIVOR
    assert found.survivors == {(path, (start + 6, end + 6, replacement)): Held(0b1111000, edited=True)}


@pytest.mark.parametrize("damage", ["", "def first(): ..."])
def test_a_kept_source_that_is_damaged_keeps_nothing(tmp_path: Path, damage: str) -> None:
    plan, sources = written(tmp_path / "project", FILES), KeptSources(tmp_path / "sources")
    sources.save(plan)
    digest = plan.files["pkg/m.py"]
    assert sources.text(digest) == SOURCE
    (tmp_path / "sources" / digest).write_text(damage)
    with pytest.raises(OSError, match="damaged"):
        sources.text(digest)


def test_other_files_in_the_place_of_the_sources_are_removed(tmp_path: Path) -> None:
    plan, directory = written(tmp_path / "project", FILES), tmp_path / "sources"
    directory.write_text("")
    KeptSources(directory).save(plan)
    (directory / "other/inner").mkdir(parents=True)
    (directory / "old").write_text("")
    KeptSources(directory).save(plan)
    assert {file.name for file in directory.iterdir()} == {plan.files[path] for path in plan.sources}


SLOW = "tests/test_slow.py"
TRIAL = {
    "pyproject.toml": b'[tool.mutmut]\nsource_paths = ["pkg"]\n',
    "pkg/__init__.py": b"",
    "pkg/m.py": b"def weak(a):\n    return a + 1\n",
    "tests/test_m.py": b"from pkg.m import weak\n\n\ndef test_weak():\n    assert weak(1)\n",
    SLOW: b"import time\n\n\ndef test_slow():\n    time.sleep(2.1)\n",  # shorter suites run whole
}


async def verdict(trial: Trial, replacement: str) -> tuple[Status, int | None]:
    """Of one mutant, and how many tests were run."""
    found = [each for each in await trial.discover() if each.replacement == replacement]
    [result] = (await trial.test(found)).values()
    return result.status, result.tests_completed


async def test_a_new_test_is_all_that_is_run_with_a_known_survivor(tmp_path: Path) -> None:
    """In the same server, and in the next one."""
    async with Trial.of(TRIAL, tmp_path) as trial:
        assert await verdict(trial, "2") == (Status.SURVIVED, 1 + 2)
        trial.write("tests/test_new.py", "def test_new():\n    pass\n")
        assert await verdict(trial, "2") in [(Status.SURVIVED, 1), (Status.SURVIVED, 1 + 1)]  # perhaps its own first
        trial.write("tests/test_new.py", "def test_new():\n    pass\n\n\ndef test_newer():\n    pass\n")
    async with Trial.of(TRIAL, tmp_path) as trial:
        assert await verdict(trial, "2") in [(Status.SURVIVED, 2), (Status.SURVIVED, 1 + 2)]
        trial.edit("tests/test_m.py", "assert weak(1)\n", "assert weak(1) == 2\n\n\ndef test_more():\n    pass\n")
        assert await verdict(trial, "2") == (Status.KILLED, 1)


async def test_a_new_test_that_needs_others_before_it_does_not_fail(tmp_path: Path) -> None:
    """It fails by itself; in the suite, which is then measured, it kills."""
    async with Trial.of({path: data for path, data in TRIAL.items() if path != SLOW}, tmp_path) as trial:
        assert (await verdict(trial, "2"))[0] is Status.SURVIVED
        trial.write("tests/conftest.py", "RAN = []\n\n\ndef pytest_runtest_call(item):\n    RAN.append(item.name)\n")
        assert (await verdict(trial, "2"))[0] is Status.SURVIVED
        trial.write(
            "tests/test_new.py",
            "from conftest import RAN\nfrom pkg.m import weak\n\n\ndef test_new():\n"
            "    assert 'test_weak' in RAN and weak(1) == 2\n",
        )
        assert (await verdict(trial, "2"))[0] is Status.KILLED
        assert not trial.notices
