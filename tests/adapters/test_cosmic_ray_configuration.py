"""Configuration: found by itself, refused in one clear sentence, proposed where there is none."""

import glob
import tomllib
from pathlib import Path

import pytest
from msp_bridge.adapters.cosmic_ray import CosmicRay
from msp_bridge.adapters.cosmic_ray.command import TestCommand
from msp_bridge.adapters.cosmic_ray.configuration import CosmicRayConfiguration, find
from support.adapters import discovered, refusal
from support.cosmic_ray_trees import adapter_on
from support.files import written
from support.projects import copied

from msp_bridge.adapter import ConfigurationError, Project
from msp_bridge.python_engine import PythonSource
from msp_bridge.reading import matches

GOOD = '[cosmic-ray]\nmodule-path = "m"\ntimeout = 5\ntest-command = "pytest -x"\n'


def project(root: Path, file: str | None = None) -> Project:
    return Project(root=root, cache=root.parent / "cache", config_file=None if file is None else root / file)


@pytest.mark.parametrize("name", ["cosmic-ray.toml", "cosmic_ray.toml", ".cosmic-ray.toml", "mutation.toml"])
def test_the_configuration_is_found_by_its_name_or_its_table(tmp_path: Path, name: str) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "cosmic-ray"\n')
    (tmp_path / "broken.toml").write_text("[cosmic-ray\n")
    assert CosmicRay.detect(project(tmp_path)) is None
    (tmp_path / name).write_text(GOOD)
    assert find(project(tmp_path)) == tmp_path / name
    assert CosmicRay.detect(project(tmp_path)) is not None


def test_a_named_file_counts_when_it_is_cosmic_rays(tmp_path: Path) -> None:
    (tmp_path / "cosmic-ray.toml").write_text(GOOD)
    (tmp_path / "other.toml").write_text(GOOD)
    (tmp_path / "pyproject.toml").write_text("[tool.mutmut]\n")
    assert find(project(tmp_path, "other.toml")) == tmp_path / "other.toml"
    assert find(project(tmp_path, "pyproject.toml")) is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[cosmic-ray", "can't be read"),
        ("", r"has no table \[cosmic-ray\]"),
        (GOOD.replace("timeout", "timeuot"), "lacks 'timeout'"),
        (GOOD.replace("module-path", "modules"), "lacks 'module-path'"),
        (GOOD.replace("= 5", "= 0"), "greater than 0"),
        (GOOD.replace("= 5", '= "soon"'), "is wrong"),
        (GOOD.replace("pytest -x", ""), "test-command is empty"),
        (GOOD.replace("pytest -x", "pytest 'x"), "No closing quotation"),
        (GOOD.replace('"m"', '"/etc"'), "module-path '/etc' .* leads out of the sandbox"),
        (GOOD.replace('"m"', '["m", "../m"]'), "module-path '../m' .* leads out"),
        (GOOD.replace('"m"', "3"), "is wrong"),
    ],
)
def test_a_wrong_configuration_is_an_error(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "cosmic-ray.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=complaint):
        CosmicRayConfiguration.read(tmp_path / "cosmic-ray.toml")


async def test_a_module_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    root = copied("cr_flat", tmp_path)
    (root / "cosmic-ray.toml").write_text(GOOD)
    await refusal(adapter_on(root), ConfigurationError, r"module-path 'm' .* doesn't exist")


@pytest.mark.parametrize(
    "pattern",
    ["**/*.py", "**/t*/**", "a/*", "a/**/x.py", "**", "*/.h/*", "a/b/../x.py", "a/[xy].py", "./a/x.py", "**/.*"],
)
def test_patterns_match_what_glob_finds(tmp_path: Path, pattern: str) -> None:
    files = ["x.py", "a/x.py", "a/y.py", "a/tests/x.py", "a/b/c/x.py", "a/.h/x.py", ".h/x.py", "a/.x.py"]
    written(tmp_path, dict.fromkeys(files, ""))
    found = {str(Path(path)) for path in glob.glob(pattern, root_dir=tmp_path, recursive=True)}
    assert {file for file in files if matches(file, str(Path(pattern)))} == found.intersection(files)


@pytest.mark.parametrize(
    ("files", "modules", "command"),
    [
        (["src/pkg/__init__.py", "tests/test_it.py"], ["src/pkg"], "python -m pytest -x -q"),
        (
            ["pkg/__init__.py", "tests/__init__.py", "pkg/tests/test_a.py", "setup.py"],
            ["pkg"],
            "python -m pytest -x -q",
        ),
        (["single.py", "setup.py"], ["single.py"], "python -m unittest -f"),
    ],
)
def test_a_project_without_a_configuration_gets_a_proposal(
    tmp_path: Path, files: list[str], modules: list[str], command: str
) -> None:
    written(tmp_path, dict.fromkeys(files, ""))
    remedy = CosmicRay.absent(project(tmp_path)).remedy
    assert remedy is not None
    text = remedy.removeprefix("write cosmic-ray.toml:\n")
    table = tomllib.loads(text)["cosmic-ray"]
    assert (table["module-path"], table["test-command"]) == (modules, command)
    (tmp_path / "cosmic-ray.toml").write_text(text)
    listed = CosmicRayConfiguration.read(tmp_path / "cosmic-ray.toml").modules(tmp_path)
    assert not [path for path in listed if "test" in path]


async def test_diagnose_finds_the_tool_and_the_configuration(tmp_path: Path) -> None:
    root = copied("cr_flat", tmp_path)
    async with adapter_on(root, edited=True) as adapter:
        findings = [finding async for finding in adapter.diagnose()]
        assert [(finding.good, finding.subject) for finding in findings] == [
            (True, "cosmic-ray"),
            (True, "configuration"),
            (True, "tests"),
            (True, "isolation"),
        ]
        assert findings[2].text == "3 tests"
        text = (root / "cosmic-ray.toml").read_text()
        (root / "cosmic-ray.toml").write_text(text.replace("python -m pytest", "make test"))
        findings = [finding async for finding in adapter.diagnose()]
        assert findings[-1].text.startswith("`make test -q -p no:cacheprovider tests` runs as it is")
        (root / "cosmic-ray.toml").write_text(GOOD)
        findings = [finding async for finding in adapter.diagnose()]
        assert (findings[-1].good, findings[-1].remedy) == (False, "correct it")
        (root / "cosmic-ray.toml").unlink()
        findings = [finding async for finding in adapter.diagnose()]
        assert 'module-path = ["calc"]' in str(findings[-1].remedy)


async def test_the_http_distributor_is_logged_and_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    root = copied("cr_flat", tmp_path)
    text = (root / "cosmic-ray.toml").read_text()
    (root / "cosmic-ray.toml").write_text(text.replace('"local"', '"http"'))
    async with adapter_on(root) as adapter:
        assert await discovered(adapter) == await discovered(adapter)
    assert caplog.text.count("the distributor 'http' isn't used") == 1


def test_offsets_lead_from_cosmic_rays_text_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_bytes(b"a\r\nbc\rd\r\n\r\ne\n")
    source = PythonSource.read(tmp_path, "m.py")
    assert source.normal == "a\nbc\nd\n\ne\n"
    for at, character in enumerate(source.normal):
        there = source.text.text[source.offset(at)]
        assert there == character or (character == "\n" and there == "\r")
    assert source.offset(len(source.normal)) == len(source.text.text)


def spelled(root: Path, command: str, *, engine: bool = True) -> tuple[str, ...] | None:
    """What the engine gets of a test command; `{root}` stands for the project's."""
    (root / "cosmic-ray.toml").write_text(GOOD.replace("pytest -x", command.replace("{root}", str(root))))
    configuration = CosmicRayConfiguration.read(root / "cosmic-ray.toml")
    greeting = {"paths": [], "engine": engine}
    return TestCommand.of(configuration, root, root / ".venv/bin/python", greeting).pytest_arguments


@pytest.fixture
def with_environments(tmp_path: Path) -> Path:
    """A project with an environment of its own, and with another one of a different interpreter."""
    root = tmp_path / "project"
    (root / "m").mkdir(parents=True)
    for directory in (root / ".venv/bin", root / "other/bin"):
        directory.mkdir(parents=True)
        (directory / "python3.12").write_text(f"#!/bin/sh\n# {directory}\n")
        (directory / "python").symlink_to("python3.12")
        (directory / "python3").symlink_to("python")
        (directory / "python3.10").write_text("#!/bin/sh\n")
        (directory / "pytest").write_text("#!/bin/sh\n")
        for program in directory.iterdir():
            program.chmod(0o755)
    return root


@pytest.mark.parametrize(
    "program",
    [
        "pytest",
        "python -m pytest",
        "python3 -m pytest",
        "python3.12 -m pytest",
        ".venv/bin/pytest",
        ".venv/bin/python -m pytest",
        "{root}/.venv/bin/python3 -m pytest",
        "uv run pytest",
        "uv run python -m pytest",
        "poetry run pytest",
        "pdm run pytest",
        "pipenv run python -m pytest",
        "hatch run pytest",
    ],
)
def test_pytest_is_recognized_in_any_spelling(with_environments: Path, program: str) -> None:
    command = f"{program} -x -k 'a or b' {{root}}/tests/test_m.py::test_it --junitxml={{root}}/out.xml -c{{root}}x"
    expected = ("-x", "-k", "a or b", "tests/test_m.py::test_it", "--junitxml=out.xml", f"-c{with_environments}x")
    assert spelled(with_environments, command) == expected
    assert spelled(with_environments, program) == ()
    assert spelled(with_environments, program, engine=False) is None


@pytest.mark.parametrize(
    "command",
    [
        "python tests.py",
        "python -m unittest",
        "python -I -m pytest",
        "python -m pytest_thing",
        "python3.10 -m pytest",
        "other/bin/pytest",
        "other/bin/python -m pytest",
        ".venv/bin/nothing -m pytest",
        "uv run --with hypothesis pytest",
        "uv run other/bin/pytest",
        "uv run",
        "uv pip list pytest",
        "hatch run test:pytest",
        "tox",
        "make test",
        "sh -c 'pytest'",
        "env A=1 pytest",
        "nice pytest",
    ],
)
def test_what_is_not_pytest_of_the_project_stays_a_command(with_environments: Path, command: str) -> None:
    assert spelled(with_environments, command) is None
