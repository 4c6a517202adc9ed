"""Configuration: found by itself, refused in one clear sentence, proposed where there is none."""

from __future__ import annotations

import glob
import tomllib
from pathlib import Path

import pytest
from msp_bridge.adapters.cosmic_ray import CosmicRay
from msp_bridge.adapters.cosmic_ray.configuration import Configuration, find, matches
from msp_bridge.adapters.cosmic_ray.module import Module
from support.cosmic_ray_trees import adapter_on, copied, discovered

from msp_bridge.adapter import ConfigurationError, Project

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
        (GOOD.replace('"m"', '"/etc"'), "module-path '/etc' .* leads out of the private copies"),
        (GOOD.replace('"m"', '["m", "../m"]'), "module-path '../m' .* leads out"),
        (GOOD.replace('"m"', "3"), "is wrong"),
    ],
)
def test_a_wrong_configuration_is_told(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "cosmic-ray.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=complaint):
        Configuration.read(tmp_path / "cosmic-ray.toml")


async def test_a_module_path_that_is_not_there_is_told(tmp_path: Path) -> None:
    root = copied("cr_flat", tmp_path)
    (root / "cosmic-ray.toml").write_text(GOOD)
    async with adapter_on(root) as adapter:
        with pytest.raises(ConfigurationError, match=r"module-path 'm' .* doesn't exist"):
            await discovered(adapter)


@pytest.mark.parametrize(
    "pattern",
    ["**/*.py", "**/t*/**", "a/*", "a/**/x.py", "**", "*/.h/*", "a/b/../x.py", "a/[xy].py", "./a/x.py", "**/.*"],
)
def test_patterns_match_what_glob_finds(tmp_path: Path, pattern: str) -> None:
    files = ["x.py", "a/x.py", "a/y.py", "a/tests/x.py", "a/b/c/x.py", "a/.h/x.py", ".h/x.py", "a/.x.py"]
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
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
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    remedy = CosmicRay.absent(project(tmp_path)).remedy
    assert remedy is not None
    text = remedy.removeprefix("write cosmic-ray.toml:\n")
    table = tomllib.loads(text)["cosmic-ray"]
    assert (table["module-path"], table["test-command"]) == (modules, command)
    (tmp_path / "cosmic-ray.toml").write_text(text)
    listed = Configuration.read(tmp_path / "cosmic-ray.toml").modules(tmp_path)
    assert not [path for path in listed if "test" in path]


async def test_diagnose_finds_the_tool_and_the_configuration(tmp_path: Path) -> None:
    root = copied("cr_flat", tmp_path)
    async with adapter_on(root) as adapter:
        findings = [finding async for finding in adapter.diagnose()]
        assert [(finding.good, finding.subject) for finding in findings] == [
            (True, "cosmic-ray"),
            (True, "configuration"),
        ]
        (root / "cosmic-ray.toml").write_text(GOOD)
        findings = [finding async for finding in adapter.diagnose()]
        assert (findings[-1].good, findings[-1].remedy) == (False, "correct it")
        (root / "cosmic-ray.toml").unlink()
        findings = [finding async for finding in adapter.diagnose()]
        assert 'module-path = ["calc"]' in str(findings[-1].remedy)


async def test_the_http_distributor_gets_a_word_and_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    root = copied("cr_flat", tmp_path)
    text = (root / "cosmic-ray.toml").read_text()
    (root / "cosmic-ray.toml").write_text(text.replace('"local"', '"http"'))
    async with adapter_on(root) as adapter:
        assert await discovered(adapter) == await discovered(adapter)
    assert caplog.text.count("the distributor 'http' isn't used") == 1


def test_offsets_lead_from_cosmic_rays_text_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_bytes(b"a\r\nbc\rd\r\n\r\ne\n")
    module = Module.read(tmp_path, "m.py")
    assert module.normal == "a\nbc\nd\n\ne\n"
    for at, character in enumerate(module.normal):
        there = module.source.text[module.offset(at)]
        assert there == character or (character == "\n" and there == "\r")
    assert module.offset(len(module.normal)) == len(module.source.text)
