"""`msp-bridge init` proposes a tool for each language, writes what is missing, and changes no file that is there."""

import json
import os
import pty
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner, Result
from support.command_line import command as typed
from support.command_line import environment

from msp_bridge.adapter import Project
from msp_bridge.cli.init import command
from msp_bridge.cli.run import run as run_command
from msp_bridge.environment.distributions import installed

DOCS = Path(__file__).parents[2] / "docs"
PACKAGE = json.dumps({"scripts": {"test": "vitest"}, "devDependencies": {"vitest": "3"}})
LANGUAGES = {  # a project of each: its files, and what is to be typed
    "pit": (("pom.xml", "src/main/java/Shop.java", "src/test/java/ShopTest.java"), "msp-bridge run"),
    "mutmut": (("shop.py", "test_shop.py"), "python -m pip install 'mutmut>=3.8.1,<4' 'pytest>=9.2'"),
    "stryker-js": (
        ("src/shop.ts", "package.json"),
        "npm install --save-dev @stryker-mutator/core @stryker-mutator/vitest-runner",
    ),
    "stryker-net": (("Shop.sln", "Shop.cs", "Shop.Tests.csproj"), "dotnet tool install -g dotnet-stryker"),
    "cargo-mutants": (("Cargo.toml", "src/lib.rs"), "cargo install --locked cargo-mutants"),
    "gremlins": (("go.mod", "shop.go"), "go install github.com/go-gremlins/gremlins/cmd/gremlins@latest"),
}
WRITTEN = {"mutmut": {"pyproject.toml"}, "stryker-js": {"stryker.config.json"}, "pit": {"msp-bridge.toml"}}
TEXTS = {"package.json": PACKAGE, "Shop.Tests.csproj": "Microsoft.NET.Test.Sdk"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for a project, on a machine with no tool, and an interpreter that has none."""
    root, programs = tmp_path / "project", tmp_path / "bin"
    for directory in (root, programs):
        directory.mkdir()
    for name, place in {
        "MSP_BRIDGE_CACHE": "cache",
        "HOME": "home",
        "PATH": "bin",
        "VIRTUAL_ENV": "environment",
    }.items():
        monkeypatch.setenv(name, str(tmp_path / place))
    for variable in ("GOPATH", "GOBIN", "CARGO_HOME"):
        monkeypatch.delenv(variable, raising=False)
    write(tmp_path / "environment", "bin/python")[0].chmod(0o755)
    monkeypatch.chdir(root)
    return root


def write(root: Path, *names: str) -> list[Path]:
    files = [root / name for name in names]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TEXTS.get(file.name, ""))
    return files


def state(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def init(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def added_to(file: str, shown: str) -> str:
    """The text that is to be added to `file` by hand."""
    (text,) = re.findall(rf"^{re.escape(file)} exists .*\n((?: {{4}}.*\n|\n)*)", shown, re.MULTILINE)
    return re.sub("^    ", "", text, flags=re.MULTILINE).rstrip("\n") + "\n"


@pytest.mark.parametrize("tool", LANGUAGES)
def test_each_language_gets_its_tool(tool: str, root: Path, tmp_path: Path) -> None:
    names, to_type = LANGUAGES[tool]
    write(root, *names)
    done = init("--yes")
    assert done.exit_code == 0, done.output
    assert re.match(rf"{tool}  \d files?: needs ", done.stdout)
    assert done.stdout.splitlines()[-1] == f"Next: {to_type}".replace(
        "python", str(tmp_path / "environment/bin/python")
    )
    assert {*state(root)} - {*names} == WRITTEN.get(tool, set())


def test_what_is_written_is_not_proposed_again(root: Path) -> None:
    write(root, *LANGUAGES["stryker-js"][0])
    assert "stryker.config.json is written\n" in init("--yes").stdout
    written = state(root)
    assert json.loads(written["stryker.config.json"])["testRunner"] == "vitest"
    assert "written" not in init("--yes").stdout
    assert state(root) == written


def test_without_a_terminal_nothing_is_written_but_with_yes(root: Path) -> None:
    write(root, *LANGUAGES["stryker-js"][0])
    before = state(root)
    done = init("--root", ".")
    assert '      "testRunner": "vitest",\n' in done.stdout
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "Next: msp-bridge init --yes --root .")
    assert state(root) == before


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_terminal_is_asked_once(answer: str, root: Path) -> None:
    write(root, *LANGUAGES["stryker-js"][0], ".github/workflows/ci.yml")
    main, side = pty.openpty()
    os.write(main, f"{answer}\n".encode())
    done = subprocess.run(typed("init"), env=environment(root), stdin=side, capture_output=True, text=True)
    os.close(main)
    os.close(side)
    assert done.stdout.count("Write 2 files? [Y/n]") == 1, done.stderr
    assert (
        (root / "stryker.config.json").exists() == (root / ".github/workflows/mutants.yml").exists() == (answer == "y")
    )


def test_a_file_that_is_there_is_left_as_it_is_and_what_to_add_is_shown(root: Path) -> None:
    there = (".gitlab-ci.yml", ".pre-commit-config.yaml", ".github/workflows/mutants.yml")
    write(root, *LANGUAGES["gremlins"][0], *there)
    before = state(root)
    done = init("--yes")
    assert [name for name in there if f"\n{name} exists and is left as it is; add:\n" in done.stdout] == [*there]
    assert state(root) == before
    (root / there[0]).write_text("include: msp-bridge.yml")
    assert f"{there[0]} exists" not in init("--yes").stdout


def test_two_languages_in_folders_of_their_own_are_both_set_up(root: Path) -> None:
    """A script, and a package.json without tests, make no project of the root."""
    files = "scripts/build.py web/src/shop.ts web/package.json crates/one/Cargo.toml crates/one/src/lib.rs"
    write(root, *files.split())
    (root / "package.json").write_text('{"devDependencies": {"prettier": "3"}}')
    (root / "crates/one/src/more.rs").touch()
    done = init("--yes")
    lines = done.stdout.splitlines()
    assert [line for line in lines if " in " in line] == [
        "cargo-mutants  2 files in crates/one/: needs installing",
        "stryker-js     1 file in web/: needs a configuration and installing",
    ]
    assert (root / "web/stryker.config.json").is_file()
    assert lines[-1] == (
        "Next: cargo install --locked cargo-mutants && "
        "(cd web/ && npm install --save-dev @stryker-mutator/core @stryker-mutator/vitest-runner)"
    )


def test_a_workspace_whose_packages_have_configurations_of_their_own_gets_none_at_its_root(root: Path) -> None:
    write(root, "package.json", "packages/a/package.json", "packages/a/stryker.config.json", "packages/a/src/a.ts")
    before = state(root)
    assert init("--yes").stdout.startswith("stryker-js  1 file in packages/a/: needs installing\n")
    assert state(root) == before


def test_the_tool_that_is_named_is_set_up_with_the_interpreter_that_is_named(root: Path, tmp_path: Path) -> None:
    write(root, "shop/__init__.py", "tests/test_shop.py", "env/bin/python")[2].chmod(0o755)
    done = init("--yes", "--adapter", "cosmic-ray", "--python", "env/bin/python")
    assert {*state(root)} >= {"cosmic-ray.toml", "msp-bridge.toml"}, done.output
    assert 'module-path = ["shop"]' in (root / "cosmic-ray.toml").read_text()
    assert (root / "msp-bridge.toml").read_text() == 'python = "env/bin/python"\n'


def test_settings_that_pyproject_has_are_not_hidden_by_a_file_of_their_own(root: Path) -> None:
    write(root, *LANGUAGES["pit"][0], "env/bin/python")[-1].chmod(0o755)
    (root / "pyproject.toml").write_text("[tool.msp-bridge]\njobs = 1\n")
    before = state(root)
    shown = added_to("pyproject.toml", init("--yes", "--python", "env/bin/python").stdout)
    assert shown == '[tool.msp-bridge]\npython = "env/bin/python"\n\n[tool.msp-bridge.pit]\nversion = "1.25.9"\n'
    assert state(root) == before
    (root / "pyproject.toml").unlink()
    assert init("--yes", "--python", "env/bin/python").stdout.endswith("Next: msp-bridge run --python env/bin/python\n")
    assert tomllib.loads((root / "msp-bridge.toml").read_text()) == {
        "python": "env/bin/python",
        "pit": {"version": "1.25.9"},
    }


@pytest.mark.parametrize(
    ("names", "added"),
    [
        (("src/shop.py", "test_shop.py"), None),
        (("project.py", "test_shop.py"), None),
        (("shop/__init__.py", "more/__init__.py", "tests/test_shop.py", "pyproject.toml"),
         ("pyproject.toml", '[tool.mutmut]\nsource_paths = ["more", "shop"]\n')),
        (("shop/__init__.py", "tests/test_shop.py", "setup.cfg"), ("setup.cfg", "[mutmut]\nsource_paths = shop\n")),
        (("acme/shop/__init__.py", "tests/unit/__init__.py", ".x/y/__init__.py", "test_shop.py", "pyproject.toml"),
         ("pyproject.toml", '[tool.mutmut]\nsource_paths = ["acme/shop"]\n')),
    ],
)  # fmt: skip
def test_mutmut_is_told_where_the_sources_are_if_it_can_not_guess(
    names: tuple[str, ...], added: tuple[str, str] | None, root: Path
) -> None:
    write(root, *names)
    done = init("--yes")
    assert ("source_paths" in done.stdout) == (added is not None)
    if added is not None:
        assert added_to(added[0], done.stdout) == added[1]
        assert done.stdout.endswith(f"'pytest>=9.2', when you have added what is shown to {added[0]}\n")


def test_a_folder_without_a_project_is_an_error(root: Path) -> None:
    (root / "script.py").touch()
    done = CliRunner().invoke(command, ["--yes"], standalone_mode=False)
    assert str(done.exception).startswith(f"there is no project with tests in {root} for any of the tools: ")


class TestJobsOfCI:
    """What is written for a service is valid, and calls commands that there are."""

    @pytest.fixture
    def jobs(self, root: Path) -> tuple[str, str]:
        """The workflow of GitHub, and the jobs of GitLab, of a tree with each language."""
        for tool, (names, _) in LANGUAGES.items():
            write(root, *(f"{tool}/{name}" for name in names))
        write(root, "mutmut/pyproject.toml", ".github/workflows/ci.yml", ".gitlab-ci.yml")
        gitlab = added_to(".gitlab-ci.yml", init("--yes").stdout)
        return (root / ".github/workflows/mutants.yml").read_text(), gitlab

    def test_they_have_a_step_for_each_tool(self, jobs: tuple[str, str]) -> None:
        workflow, gitlab = map(yaml.safe_load, jobs)
        steps = workflow["jobs"]["mutants"]["steps"]
        commands = [step["run"].strip() for step in steps if "run" in step]
        assert [step["uses"].partition("@")[0] for step in steps if "uses" in step][:1] == ["actions/checkout"]
        assert {*gitlab} == {f"mutants of {tool}" for tool in LANGUAGES}
        words = ("pit", "'mutmut>=3", "npm install)", "dotnet-stryker", "cargo-mutants", "gremlins@")
        for tool, word in zip(LANGUAGES, words, strict=True):
            assert [line for line in commands if word in line] == [
                line.strip() for line in gitlab[f"mutants of {tool}"]["script"] if word in line and "run" not in line
            ]

    def test_their_commands_exist(self, jobs: tuple[str, str]) -> None:
        lines = re.findall(r"msp-bridge run [^\n]*(?:\n +--[^\n]*)*", "\n".join(jobs))
        assert len(lines) == 1 + len(LANGUAGES)
        for line in lines:
            words = shlex.split(re.sub(r"\$(?:{{[^}]*}}|\w+)", "main", line))
            context = run_command.make_context("run", words[2:], resilient_parsing=False)
            assert isinstance(context, click.Context)


def test_the_hook_is_that_of_the_page(root: Path) -> None:
    write(root, *LANGUAGES["gremlins"][0], ".pre-commit-config.yaml")
    assert added_to(".pre-commit-config.yaml", init().stdout) in (DOCS / "how-to/ci.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("script", "files", "expected"),
    [
        ("mocha", ("lib/a.js",), {}),
        ("npm test && " * 200, ("lib/a.js",), {}),  # what calls itself
        ("mocha --exit 'spec/**/*.js' one.test.js", ("lib/a.js",), {"mochaOptions": {"spec": ["spec/**/*.js", "one.test.js"]}}),
        ("npm run lint && npm run unit", ("lib/a.js",), {"mochaOptions": {"spec": ["test"], "ui": "tdd", "require": ["chai"]}}),
        ("mocha --exit", ("a.js", "a.test.js", "a.min.js", "bench.js", "example/b.js", "types/a.d.ts", "eslint.config.mjs"),
         {"mutate": ["a.js"]}),
        ("mocha", ("app/a.ts", "app/a.spec.ts", "app/b.js", "docs/c.js", "site/package.json", "site/d.js"),
         {"mutate": ["app/**/!(*.spec|*.test).+(js|ts)"]}),
        ("pnpm -r test", ("pnpm-workspace.yaml", "pkg/a/package.json", "pkg/a/src/a.js", "pkg/a/test/a.js"),
         {"mutate": ["pkg/a/src/**/*.js"], "mochaOptions": {"spec": ["pkg/a/test/*.{js,cjs,mjs}"]}}),
    ],
)  # fmt: skip
def test_the_first_configuration_of_stryker_js_names_the_runner_and_what_lies_outside_of_its_defaults(
    script: str, files: tuple[str, ...], expected: dict[str, object], root: Path
) -> None:
    write(root, *files)
    scripts = {"test": script, "unit": "mocha -u tdd --require=chai test"}
    (root / "package.json").write_text(json.dumps({"scripts": scripts, "devDependencies": {"mocha": "11"}}))
    setup = installed()["stryker-js"].load().setup(Project(root, root / "cache"))
    configuration = json.loads(setup.files["stryker.config.json"])
    assert configuration.pop("testRunner") == "mocha"
    assert configuration.pop("plugins") == ["@stryker-mutator/mocha-runner"]
    assert configuration == expected


@pytest.mark.parametrize(
    ("script", "package", "expected"),
    [
        ("NODE_OPTIONS=--experimental-vm-modules npx jest", "jest", ["--experimental-vm-modules"]),
        ("cross-env NODE_OPTIONS='--import=tsx --max-old-space-size=99' jest", "jest", ["--import", "tsx"]),
        ("node --experimental-vm-modules node_modules/jest/bin/jest.js", "jest", ["--experimental-vm-modules"]),
        ("mocha --import tsx --ui tdd 'test/*.ts'", "mocha", ["--import", "tsx"]),
        ("node test.js && mocha", "mocha", None),
    ],
)
def test_what_the_script_gives_node_js_is_given_to_the_processes_of_stryker_js(
    script: str, package: str, expected: list[str] | None, root: Path
) -> None:
    write(root, "lib/a.js")
    (root / "package.json").write_text(json.dumps({"scripts": {"test": script}, "devDependencies": {package: "1"}}))
    setup = installed()["stryker-js"].load().setup(Project(root, root / "cache"))
    configuration = json.loads(setup.files["stryker.config.json"])
    assert configuration.get("testRunnerNodeArgs") == expected
    assert configuration.get("mochaOptions", {}).get("spec", ["test/*.ts"]) == ["test/*.ts"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("npm run lint && ava", {"stryker.config.json": {"commandRunner": {"command": "npx ava"}}}),
        ("tsc && make test && node check.js", {}),
        ("ava", {}),
    ],
)
def test_a_linter_before_the_tests_judges_no_mutants(script: str, expected: dict[str, Any], root: Path) -> None:
    write(root, "lib/a.js")
    (root / "package.json").write_text(json.dumps({"scripts": {"test": script, "lint": "eslint ."}}))
    setup = installed()["stryker-js"].load().setup(Project(root, root / "cache"))
    assert {name: json.loads(text) for name, text in setup.files.items()} == expected


@pytest.mark.parametrize(
    ("script", "packages", "files"),
    [
        ("npm run lint && nyc tape 'test/**/*.js'", ["tape"], ["test/**/*.js"]),
        ("c8 --100 node --test", [], None),
        ("node --import ./a.js --test one.test.js", [], ["one.test.js"]),
        ("tap lib", ["tap"], None),
    ],
)
def test_tape_and_the_test_runner_of_node_js_are_run_as_tap(
    script: str, packages: list[str], files: list[str] | None, root: Path
) -> None:
    write(root, "lib/a.js")
    package = {"scripts": {"test": script}, "devDependencies": dict.fromkeys(packages, "1")}
    (root / "package.json").write_text(json.dumps(package))
    setup = installed()["stryker-js"].load().setup(Project(root, root / "cache"))
    configuration = json.loads(setup.files["stryker.config.json"])
    assert configuration["testRunner"] == "tap"
    tap = configuration.get("tap", {})
    assert tap.get("testFiles") == files
    assert tap.get("nodeArgs", [])[:2] == (["--import", "./a.js"] if "--import" in script else [])
