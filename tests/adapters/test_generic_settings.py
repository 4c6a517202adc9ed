"""The tables that users write: the error for a wrong one, what the right ones mean, and those of the document."""

import glob
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.generic import Generic
from msp_bridge.adapters.generic.settings import CommandTemplate, Tool
from support.files import written
from support.projects import PROJECTS

from msp_bridge.adapter import ConfigurationError, Project

TABLE = {"files": ["src/**/*.php"], "discover": ["tool", "{report}"], "test": ["tool", "{report}", "{files}"]}


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (["tool"], r"is not the table of a tool: write \[generic\.tool\] with the keys files, discover and test"),
        (TABLE | {"tests": []}, "unknown key 'tests': did you mean 'test'?"),
        (
            TABLE | {"cwd": "."},
            "unknown key 'cwd': choose from files, discover, test, baseline, report, writes, environments, missing",
        ),
        (
            {**TABLE, "files": "src/*.php"},
            r'files is missing or no list of globs: set it to what the tool mutates, such as \["src',
        ),
        (
            {**TABLE, "files": ["/src/*.php"]},
            "'/src/\\*.php' in files leads out of the project: write a path relative to the project's root",
        ),
        (
            {**TABLE, "files": ["../*.php"]},
            "leads out of the project: write a path relative to the project's root, without ..",
        ),
        (
            {"files": ["*.php"], "test": ["tool"]},
            "discover is missing: set it to the command that lists the mutants without testing",
        ),
        (
            {"files": ["*.php"], "discover": ["tool", "{report}"]},
            "test is missing: set it to the command that tests them",
        ),
        (TABLE | {"test": "tool {report}"}, r"test is no list of words: write it as \[\"tool\""),
        (TABLE | {"test": ["tool", 3]}, "test: 3 is not a word: write a word, or a list of words that belong together"),
        (TABLE | {"test": ["tool", "{raport}"]}, r"there is no placeholder \{raport\}: choose from \{files\}, "),
        (TABLE | {"test": ["{root}/tool"]}, r"begins with \{root\}/tool: begin with a program"),
        (TABLE | {"test": ["tool", "{jobs:,}"]}, r"\{jobs\} is one value, which nothing joins: write \{jobs\}"),
        (TABLE | {"test": ["tool", ["{files}", "{ranges}"]]}, "can't be repeated for two lists: use one of"),
        (TABLE | {"discover": ["tool", "{report}", "{ranges}"]}, r"replace \{ranges\} by \{files\}"),
        (TABLE | {"test": ["tool"]}, r"test does not say where the report goes: put \{report\} in it, or set `report`"),
        (TABLE | {"report": 3}, "report is no path or glob: write it as"),
        (
            TABLE | {"report": "/tmp/report.json"},
            "leads out of the project: write a path relative to the project's root",
        ),
        (TABLE | {"missing": "Killed"}, "missing is 'Killed': choose from Ignored, NoCoverage"),
        (TABLE | {"environments": "yes"}, "environments is neither true nor false: say whether"),
        (TABLE | {"report": "out/*.json", "writes": False}, "is written into it: remove `writes = false`"),
        (TABLE | {"test": ["tool", "{Report}"]}, r"\{Report\} is no placeholder: write \{report\}"),
        (TABLE | {"test": ["tool", "{ report }"]}, r"\{ report \} is no placeholder: write \{report\}"),
        (TABLE | {"test": ["tool", "{{report}}"]}, r"\{\{report\}\} is no placeholder: write \{report\}"),
        (TABLE | {"report": "{jobs}/report.json"}, r"\{jobs\} in report has no value: choose from \{report\}, "),
        (TABLE | {"writes": "no"}, "writes is neither true nor false: say whether the tool writes into the project"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_an_error_that_says_what_to_write(tmp_path: Path, table: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^generic\.tool: .*{says}|^generic\.tool {says}"):
        Generic.detect(Project(tmp_path, tmp_path / "cache", settings={"tool": table}))


def test_it_is_detected_by_its_settings_alone(tmp_path: Path) -> None:
    project = Project(tmp_path, tmp_path / "cache", settings={"tool": TABLE})
    assert Generic.detect(project) is not None
    assert Generic.detect(Project(tmp_path, tmp_path / "cache")) is None
    assert Generic.detect(Project(tmp_path, tmp_path / "cache", tmp_path / "file", settings={"tool": TABLE})) is None
    remedy = str(Generic.absent(project).remedy)
    assert remedy.startswith("write msp-bridge.toml, for instance:\n")
    assert tomllib.loads(remedy.partition("\n")[2])["generic"].keys() == {"infection"}


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        (["tool", "{files}"], ["tool", "a b", "c"]),
        (["tool", "--filter={files}"], ["tool", "--filter=a b", "--filter=c"]),
        (["tool", "--filter={files:,}"], ["tool", "--filter=a b,c"]),
        (["tool", ["-m", "{files}"], "-v"], ["tool", "-m", "a b", "-m", "c", "-v"]),
        (["tool", ["-m", "{root}/{files}"]], ["tool", "-m", "/r/a b", "-m", "/r/c"]),
        (["tool", "{ranges: }"], ["tool", "c:1-2 c:4-4"]),
        (["tool", "--jobs={jobs}", "{report}", "{directory}"], ["tool", "--jobs=2", "/d/report.json", "/d"]),
        (["tool", '{"json": {}}', "{1..2}", "${HOME}"], ["tool", '{"json": {}}', "{1..2}", "${HOME}"]),
    ],
    ids=str,
)
def test_placeholders_are_repeated_or_joined_and_no_shell_splits_them(words: list[Any], argv: list[str]) -> None:
    values = {"root": "/r", "directory": "/d", "report": "/d/report.json", "jobs": "2"}
    command = CommandTemplate.of(words, "test")
    assert command.words({**values, "files": ["a b", "c"], "ranges": ["c:1-2", "c:4-4"]}) == argv


@pytest.mark.parametrize(
    "pattern",
    [
        "*",
        "**",
        "**/*.php",
        "src/**",
        "src/**/*.php",
        "src/*/?.php",
        "s*/a.php",
        "./src/a.php",
        "src/[ab].php",
        "src/[!a].php",
        "src/.hidden/*.php",
        ".*/*",
        "src/a[+]b.php",
        "src/**/deep/*",
        "**/**/a.php",
    ],
)
def test_a_claim_is_what_the_glob_finds(tmp_path: Path, pattern: str) -> None:
    paths = ["a.php", "src/a.php", "src/b.php", "src/a.phpx", "src/c/d.php", "src/c/deep/a.php", "src/.hidden/a.php"]
    written(tmp_path, dict.fromkeys([*paths, "src/a+b.php", ".config/a.php", "src/.a.php"], ""))
    tool = Tool.of("generic.tool", {**TABLE, "files": [pattern]})
    everything = [file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()]
    found = {path for path in glob.glob(pattern, root_dir=tmp_path, recursive=True) if (tmp_path / path).is_file()}
    assert tool.listed(tmp_path) == sorted(path.removeprefix("./") for path in found)
    assert sorted(filter(tool.claims, everything)) == tool.listed(tmp_path)


DOCUMENT = (Path(__file__).parents[2] / "docs/reference/tools/generic.md").read_text("utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
TABLES = [(name, table) for block in BLOCKS for name, table in tomllib.loads(block)["generic"].items()]


@pytest.mark.parametrize(("name", "table"), TABLES, ids=[name for name, _ in TABLES])
def test_a_table_is_valid(name: str, table: Any) -> None:
    assert Tool.of(name, table).files


def test_the_example_is_the_project_that_is_tested() -> None:
    assert (PROJECTS / "generic_shop/msp-bridge.toml").read_text("utf-8") in BLOCKS
