"""What is measured again when Python files have changed since the tests were measured, and the servers are new."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.mutmut_trial import PACKAGE, Trial

from msp_bridge.adapter import Status
from msp_bridge.python_engine.programs.baseline import Baseline, Held, bits
from msp_bridge.python_engine.programs.channel import TargetPlan
from msp_bridge.python_engine.programs.file_edit import digest_of
from msp_bridge.python_engine.programs.kept import Changes, KeptSources
from msp_bridge.python_engine.programs.process_starts import PROCESSES

SOURCE = """LIMIT = 3


def first(a):
    return a + LIMIT


def second(a):
    return a - 1


def called_at_import():
    return 4


FOUR = called_at_import()


class Box:
    def size(self):
        return 1
"""
FILES = {
    "pkg/m.py": SOURCE,
    "pkg/late.py": "def third():\n    return 3\n\n\ndef fourth(m):\n    return m.late\n",
    "pyproject.toml": 'addopts = "tests/test_a.py -p tests.test_loaded"',
    "conftest.py": 'pytest_plugins = ["tests.test_plugin"]  # neither test_a nor test_b\n',
    "tests/test_loaded.py": "def test_loaded(): ...\n",
    "tests/test_plugin.py": "def test_plugin(): ...\n",
    "tests/base_cases.py": "import test_b\n",
    "tests/test_a.py": "from pkg import m\ndef test_b(): ...\ndef test_both(): hasattr(m, 'asked')\n",
    "tests/test_b.py": "def test_second(): ...\n",
    "tests/test_c.py": "from tests.base_cases import *\ndef test_third(): ...\n",
    "tests/test_d.py": "from pathlib import Path\ndef test_d(): Path('docs').iterdir()\n",
    "setup.py": "open('README.md')",
    "README.md": "",
    "docs/usage.rst": "",
}
TESTS = [
    "tests/test_a.py::test_b",  # has the name of a file, and does not mention it
    "tests/test_a.py::test_both",
    "tests/test_b.py::test_second",
    "tests/test_c.py::test_second",
    "tests/test_c.py::test_third",
    "tests/test_plugin.py::test_plugin",
    "tests/test_d.py::test_d",
    "README.md::README.md",
    "tests/test_loaded.py::test_loaded",
]
LINES = {"pkg/m.py": {"5": "0x3", "9": "0xe"}, "pkg/late.py": {"1": "0x10", "2": "0x10"}}  # first; second; third


def written(directory: Path, files: Mapping[str, str]) -> TargetPlan:
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    digests = {path: digest_of(text.encode()) for path, text in files.items()}
    sources = tuple(path for path in files if path.startswith("pkg/"))
    return TargetPlan(str(directory), (), sources, (1.0, 15.0), "content", "environment", files=digests)


def kept(
    directory: Path,
    changed: Mapping[str, str | None],
    tests: list[str],
    files: Mapping[str, str] = FILES,
    ran: str = "called_at_import",
    **report: object,
) -> Baseline | None:
    """What is kept of a measurement of `files` with this `report`; `ran`: what importing the tests called then."""
    plan, sources = written(directory, files), KeptSources(directory.parent / "sources")
    sources.save(plan, TESTS)
    now = {path: text for path, text in {**files, **changed}.items() if text is not None}
    called = ("called_at_import", now["pkg/m.py"].partition("def called_at_import")[0].count("\n") + 1)
    facts = {"live": [], "suspended": [], "called": [called], "read": False}
    measured = {"durations": dict.fromkeys(range(9), 0.5), "failing": {}, "lines": LINES, "late": ["pkg/late.py"]}
    collected = {"tests": TESTS, "seconds": 0.1, "files": {"pkg/m.py": facts}}
    baseline = Baseline.of({**measured, **report}, collected).with_survivor(SURVIVOR)
    for path in changed.keys() - now.keys():
        (directory / path).unlink()
    return Changes(written(directory, now), plan.files, sources, {"pkg/m.py": [ran]}).kept(baseline, tests)


WITH_HELPER = SOURCE.replace("a + LIMIT", "helper(a)") + "\n\ndef helper(a):\n    return a\n"
WITH_METHOD = SOURCE.replace("a + LIMIT", "Box().area()") + "\n    def area(self):\n        return 2\n"
LATE_EDITED = FILES["pkg/late.py"].replace("3", "5")
SURVIVOR = ("pkg/m.py", (SOURCE.index("a - 1"), SOURCE.index("a - 1") + 5, "a + 1"))
A, BOTH, B, INHERITED, C, PLUGIN, D, README, LOADED = TESTS
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
        ({"tests/test_b.py": "import os\nos.environ['X'] = ''\n" + B_EDITED}, TESTS, None),
        ({"tests/test_new.py": "m.LIMIT = 4\ndef test_new(): ..."}, [NEW, *TESTS], None),
        ({"tests/test_new.py": "m.LIMIT: int = 4\ndef test_new(): ..."}, [NEW, *TESTS], None),
        ({"tests/test_a.py": EDITED.replace("hasattr(m, 'asked')", "...")}, TESTS, [A, BOTH]),
        ({"tests/test_a.py": None}, [B, INHERITED, C, PLUGIN, D, README, LOADED], []),
        ({"tests/test_b.py": B_EDITED}, TESTS, [B, INHERITED, C]),  # by way of base_cases
        ({"tests/test_plugin.py": "def test_plugin(): assert True\n"}, TESTS, None),  # conftest.py mentions it
        ({"conftest.py": ""}, TESTS, None),
        ({"tests/base_cases.py": ""}, TESTS, None),  # it has no tests
        ({"tests/conftest.py": ""}, TESTS, None),
        ({"setup.py": "import os"}, TESTS, None),
        ({"README.md": "more"}, TESTS, [README]),
        ({"docs/usage.rst": "more", "docs/new.rst": ""}, TESTS, [D]),
        ({"tests/test_loaded.py": "def test_loaded(): assert True\n"}, TESTS, None),  # pyproject.toml does
        ({"docs/usage.rst": None}, TESTS, [D]),
        ({"README.md": "more", "tests/test_c.py": "def test_third(): 'README'\n"}, TESTS, [INHERITED, C, README]),
        ({"README.md": "more", "pkg/m.py": SOURCE.replace("+ LIMIT", "+ len('.md')")}, TESTS, None),
        ({"pkg/m.py": SOURCE.replace("a + LIMIT", "LIMIT + a")}, TESTS, [A, BOTH]),
        ({"pkg/m.py": "# new\n" + SOURCE.replace("a - 1", "a - 2")}, TESTS, [BOTH, B, INHERITED]),
        ({"pkg/m.py": "# new\n" + SOURCE.replace("return 4", "return 5")}, TESTS, None),
        ({"pkg/m.py": SOURCE.replace("LIMIT = 3", "LIMIT = 4")}, TESTS, None),
        ({"pkg/m.py": SOURCE.replace("first(a)", "first(a, b=1)")}, TESTS, None),
        ({"pkg/m.py": SOURCE.replace("return a - 1", "'What it does.'\n    return a - 1")}, TESTS, None),
        ({"pkg/m.py": SOURCE + "("}, TESTS, None),
        ({"pkg/m.py": WITH_HELPER}, TESTS, [A, BOTH]),
        ({"pkg/m.py": WITH_HELPER.replace("helper", "asked")}, TESTS, None),  # test_a asks for it
        ({"pkg/m.py": WITH_HELPER, "pkg/late.py": LATE_EDITED}, TESTS, [A, BOTH, C]),
        ({"pkg/m.py": WITH_HELPER.replace("helper", "late"), "pkg/late.py": LATE_EDITED}, TESTS, None),
        ({"pkg/m.py": SOURCE + "\n\ndef helper(a):\n    return a\n"}, TESTS, None),  # what finds it, nobody knows
        (
            {"pkg/m.py": SOURCE.replace("a + LIMIT", "a + len(os.sep)").replace("LIMIT", "import os\nLIMIT", 1)},
            TESTS,
            [A, BOTH],
        ),
        (
            {"pkg/m.py": SOURCE.replace("a + LIMIT", "a + MORE").replace("LIMIT", "MORE = 4\nLIMIT", 1)},
            TESTS,
            [A, BOTH],
        ),
        (
            {
                "pkg/m.py": SOURCE.replace("a + LIMIT", "a_module(a)").replace(
                    "LIMIT", "from json import late as a_module\nLIMIT", 1
                )
            },
            TESTS,
            None,  # the project has a module `late`
        ),
        ({"pkg/m.py": WITH_METHOD}, TESTS, [A, BOTH]),
        ({"pkg/m.py": WITH_METHOD.replace("area", "third")}, TESTS, None),  # late.py has the name
        ({"pkg/m.py": WITH_METHOD.replace("area", "__len__")}, TESTS, None),
        ({"pkg/m.py": SOURCE.replace("def second(a):\n    return a - 1\n", "")}, TESTS, None),  # nobody knows, again
        ({"pkg/late.py": LATE_EDITED}, TESTS, [C]),
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


@pytest.mark.parametrize(
    ("source", "path", "text", "is_kept"),
    [
        (WITH_HELPER, "tests/test_b.py", "dir(m)", False),
        (WITH_HELPER, "tests/test_b.py", "dir(n)", True),
        (WITH_HELPER, "tests/test_b.py", "pkgutil.iter_modules()", False),
        (WITH_HELPER, "tests/test_b.py", "tmp_dir(m, self.__dict__)", True),
        (WITH_METHOD, "pkg/late.py", "vars(box)", False),
        (WITH_METHOD, "pkg/late.py", "inspect.getmembers(box)", False),
        (WITH_METHOD, "pkg/late.py", "box.__dict__", False),
    ],
)
def test_what_lists_names_may_find_a_new_one(tmp_path: Path, source: str, path: str, text: str, is_kept: bool) -> None:
    files = {**FILES, path: f"{FILES[path]}def listing(): {text}\n"}
    found = kept(tmp_path / "project", {"pkg/m.py": source}, TESTS, files=files)
    assert (found is not None) is is_kept


@pytest.mark.parametrize(
    ("read", "changed", "again"),
    [
        ("pkg/m.py", {"pkg/m.py": SOURCE.replace("a + LIMIT", "LIMIT + a")}, [A, BOTH, D]),
        ("pkg/m.py", {"pkg/late.py": LATE_EDITED}, [C]),
        ("tests/test_b.py", {"tests/test_b.py": B_EDITED}, [B, INHERITED, C, D]),
        ("tests/", {"tests/test_b.py": B_EDITED}, [B, INHERITED, C]),
        ("tests/", {"tests/test_b.py": None}, [INHERITED, C, D]),
        ("", {"tests/more/test_new.py": ""}, [D, "tests/more/test_new.py::test_new"]),
    ],
)
def test_what_a_test_reads_or_lists_concerns_it(
    tmp_path: Path, read: str, changed: dict[str, str | None], again: list[str]
) -> None:
    """It is `test_d` here."""
    lines = {**LINES, read: {**LINES.get(read, {}), "0": "0x40"}}
    tests = [test for test in TESTS if changed.get(test.partition("::")[0], "") is not None]
    tests += [f"{path}::test_new" for path in changed if path not in FILES]
    found = kept(tmp_path / "project", changed, tests, lines=lines)
    assert found is not None
    assert [tests[test] for test in bits(found.unmeasured)] == again


def test_a_file_that_is_no_longer_read_has_lost_no_line(tmp_path: Path) -> None:
    found = kept(tmp_path / "project", {"tests/test_d.py": ""}, TESTS, lines={**LINES, "docs/": {"0": "0x40"}})
    assert found is not None
    assert not found.measured({"durations": {6: 0.1}, "failing": {}, "lines": {}}, all=True).has_lost_lines


def test_a_class_that_a_decorator_reads_is_not_looked_into(tmp_path: Path) -> None:
    """As a dataclass: another test may run over its fields."""
    before, after = (text.replace("class Box", "@dataclass\nclass Box") for text in (SOURCE, WITH_METHOD))
    assert kept(tmp_path / "project", {"pkg/m.py": after}, TESTS, files={**FILES, "pkg/m.py": before}) is None


def test_importing_the_tests_calls_other_functions_than_it_did(tmp_path: Path) -> None:
    assert kept(tmp_path / "project", {"tests/test_a.py": EDITED}, TESTS, ran="first") is None


def test_what_is_no_more_is_left_out_as_what_is_new(tmp_path: Path) -> None:
    """The tests that ran it are measured again."""
    with_helper, tests = {**FILES, "pkg/m.py": WITH_HELPER}, TESTS
    lines = {"pkg/m.py": {"5": "0x1", "22": "0x9"}}
    found = kept(tmp_path / "project", {"pkg/m.py": SOURCE}, tests, files=with_helper, lines=lines)
    assert found is not None
    assert [tests[test] for test in bits(found.unmeasured)] == [A, INHERITED]


def test_tests_that_start_processes_are_measured_again_with_each_change(tmp_path: Path) -> None:
    found = kept(tmp_path / "project", {"tests/test_a.py": EDITED}, TESTS, lines={**LINES, PROCESSES: {"0": "0x10"}})
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
    assert found.durations == [0.0, *[0.5] * 9]
    path, (start, end, replacement) = SURVIVOR
    assert found.survivors == {(path, (start + 6, end + 6, replacement)): Held(0b1111111000, edited=True)}


@pytest.mark.parametrize("damage", ["", "def first(): ..."])
def test_a_kept_source_that_is_damaged_keeps_nothing(tmp_path: Path, damage: str) -> None:
    plan, sources = written(tmp_path / "project", FILES), KeptSources(tmp_path / "sources")
    sources.save(plan, [])
    digest = plan.files["pkg/m.py"]
    assert sources.text(digest) == SOURCE
    (tmp_path / "sources" / digest).write_text(damage)
    with pytest.raises(OSError, match="damaged"):
        sources.text(digest)


def test_other_files_in_the_place_of_the_sources_are_removed(tmp_path: Path) -> None:
    plan, directory = written(tmp_path / "project", FILES), tmp_path / "sources"
    directory.write_text("")
    KeptSources(directory).save(plan, [])
    (directory / "other/inner").mkdir(parents=True)
    (directory / "old").write_text("")
    KeptSources(directory).save(plan, [])
    assert {file.name for file in directory.iterdir()} == {plan.files[path] for path in plan.sources}


SLOW = "tests/test_slow.py"
TRIAL = {
    **PACKAGE,
    "pkg/m.py": b"def weak(a):\n    return a + 1\n\n\ndef other(a):\n    return a * 3\n",
    "tests/test_m.py": b"from pkg.m import weak\n\n\ndef test_weak():\n    assert weak(1)\n",
    "tests/test_other.py": b"from pkg.m import other\n\n\ndef test_other():\n    assert other(1)\n",
    SLOW: b"import time\n\n\ndef test_slow():\n    time.sleep(2.1)\n",  # shorter suites run whole
}


async def verdict(trial: Trial, replacement: str) -> tuple[Status, int | None]:
    """Of one mutant, and how many tests were run."""
    found = [each for each in await trial.discover() if each.replacement == replacement]
    [result] = (await trial.test(found)).values()
    return result.status, result.tests_completed


async def test_only_tests_that_changes_concern_are_run_with_a_known_survivor(tmp_path: Path) -> None:
    """In the same server, and in the next one. Its own test may run first."""
    async with Trial.of(TRIAL, tmp_path) as trial:
        assert await verdict(trial, "2") == (Status.SURVIVED, 1 + 3)
        trial.write("tests/test_new.py", "def test_new():\n    pass\n")
        assert await verdict(trial, "2") in [(Status.SURVIVED, 1), (Status.SURVIVED, 1 + 1)]
        trial.write("tests/test_new.py", "def test_new():\n    pass\n\n\ndef test_newer():\n    pass\n")
    async with Trial.of(TRIAL, tmp_path) as trial:
        assert await verdict(trial, "2") in [(Status.SURVIVED, 2), (Status.SURVIVED, 1 + 2)]
        helper = "def other(a):\n    return helper(a)\n\n\ndef helper(a):\n    return a * 3\n"
        trial.edit("pkg/m.py", "def other(a):\n    return a * 3\n", helper)
        assert await verdict(trial, "2") in [(Status.SURVIVED, 1 + 1), (Status.SURVIVED, 1 + 1 + 1)]
        trial.edit("tests/test_m.py", "assert weak(1)\n", "assert weak(1) == 2\n\n\ndef test_more():\n    pass\n")
        assert await verdict(trial, "2") == (Status.KILLED, 1)


async def test_only_new_tests_are_run_with_a_known_survivor_of_code_that_runs_at_import(tmp_path: Path) -> None:
    source = TRIAL["pkg/m.py"] + b"\n\ndef limit():\n    return 7\n\n\nLIMIT = limit()\n"
    async with Trial.of({**TRIAL, "pkg/m.py": source}, tmp_path) as trial:
        assert await verdict(trial, "8") == (Status.SURVIVED, 3)
        assert await verdict(trial, "8") == (Status.SURVIVED, 0)
        trial.write("tests/test_new.py", "def test_new():\n    pass\n")
        assert await verdict(trial, "8") == (Status.SURVIVED, 1)
        trial.write("tests/test_new.py", "from pkg import m\n\n\ndef test_new():\n    assert m.LIMIT == 7\n")
        assert await verdict(trial, "8") == (Status.KILLED, 1)


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


async def test_nothing_is_kept_where_a_variable_that_counts_has_another_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = b"import os\n\n\ndef size(n):\n    if os.environ['MODE'] == os.environ['TZ']:\n        return n + 2\n    return 3\n"
    tests = b"from pkg.m import size\n\n\ndef test_size():\n    assert size(1) == 3\n"
    files = {**PACKAGE, "pkg/m.py": source, "tests/test_m.py": tests}

    async def status(mode: str, zone: str) -> Status:
        monkeypatch.setenv("MODE", mode)
        monkeypatch.setenv("TZ", zone)
        async with Trial.of(files, tmp_path, environment=("MODE",)) as trial:
            [mutant] = [one for one in await trial.discover() if one.replacement == "-"]
            [result] = (await trial.test([mutant])).values()
        return result.status

    assert await status("UTC0", "UTC1") is Status.NO_COVERAGE
    assert await status("UTC1", "UTC1") is Status.KILLED
    assert await status("UTC1", "UTC2") is Status.NO_COVERAGE
