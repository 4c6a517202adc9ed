"""Configuration: the usual project needs none, and every mistake is an error with its remedy."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.scripted.scripted_adapter import Scripted

from msp_bridge.adapter import Adapter
from msp_bridge.environment.cache import cache_of
from msp_bridge.environment.distributions import EntryPoint, installed
from msp_bridge.errors import BridgeError, ConfigurationError
from msp_bridge.workspace.configuration import Configuration, fingerprint, load_configuration
from msp_bridge.workspace.detection import detect_projects
from msp_bridge.workspace.workspace import Workspace

ADAPTERS = ["mutmut", "cosmic-ray"]


def detect(root: Path, configuration: Configuration, known: Mapping[str, EntryPoint]) -> list[Adapter]:
    """The adapters of a workspace at `root` with `configuration` as its command line's."""
    return [tool.adapter for tool in Workspace.of(detect_projects(root, configuration, None, known)).tools]


def load(root: Path, named: str | None = None) -> Configuration:
    return load_configuration(root, named, ADAPTERS)


def own(root: Path, text: str) -> Path:
    (root / "msp-bridge.toml").write_text(text)
    return root


def test_a_project_without_configuration_has_the_default(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert load(tmp_path) == Configuration()


def test_the_bridges_own_file_sets_everything(tmp_path: Path) -> None:
    text = "adapter = ['cosmic-ray', 'mutmut']\npython = 'env/bin/python'\njobs = 3\n[mutmut]\nx = 1\n"
    assert load(own(tmp_path, text)) == Configuration(
        adapters=("cosmic-ray", "mutmut"), python=tmp_path / "env/bin/python", jobs=3, settings={"mutmut": {"x": 1}}
    )


def test_one_adapter_needs_no_list(tmp_path: Path) -> None:
    assert load(own(tmp_path, "adapter = 'mutmut'")).adapters == ("mutmut",)


def test_pyproject_has_a_table_for_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.msp-bridge]\njobs = 2\n[tool.msp-bridge.mutmut]\nx = 1\n")
    assert load(tmp_path) == Configuration(jobs=2, settings={"mutmut": {"x": 1}})


def test_the_bridges_own_file_goes_before_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.msp-bridge]\njobs = 2\n")
    assert load(own(tmp_path, "jobs = 1")).jobs == 1


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "msp-bridge.toml").write_bytes(b"\xef\xbb\xbfjobs = 1\n")
    assert load(tmp_path).jobs == 1


@pytest.mark.parametrize("absolute", [True, False])
def test_a_named_file_of_the_tool_is_used_beside_our_own(tmp_path: Path, absolute: bool) -> None:
    file = tmp_path / "setup.cfg"
    file.touch()
    own(tmp_path, "jobs = 2")
    assert load(tmp_path, str(file) if absolute else "setup.cfg") == Configuration(jobs=2, tool_file=file)


def test_a_named_file_of_our_own_is_read_instead(tmp_path: Path) -> None:
    own(tmp_path, "jobs = 2")
    (tmp_path / "other").mkdir()
    own(tmp_path / "other", "jobs = 3\npython = 'here/python'")
    assert load(tmp_path, "other/msp-bridge.toml") == Configuration(jobs=3, python=tmp_path / "other/here/python")


def test_a_named_pyproject_may_be_both(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("[tool.msp-bridge]\njobs = 2\n[tool.mutmut]\n")
    assert load(tmp_path, "pyproject.toml") == Configuration(jobs=2, tool_file=file)


def test_the_command_line_goes_before_the_file() -> None:
    line = Configuration(adapters=("mutmut",), jobs=1, threshold=0)
    settings = {"mutmut": {"x": 1}}
    file = Configuration(adapters=("cosmic-ray",), jobs=2, python=Path("/p"), threshold=80, settings=settings)
    assert line.over(file) == Configuration(("mutmut",), Path("/p"), 1, 0, None, settings)
    assert Configuration().over(file) == file


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("jbos = 1", "msp-bridge.toml: unknown key 'jbos': did you mean 'jobs'?"),
        ("mutmt = 1", "msp-bridge.toml: unknown key 'mutmt': did you mean 'mutmut'?"),
        (
            "zzz = 1",
            "msp-bridge.toml: unknown key 'zzz': choose from adapter, cluster, cosmic-ray, environment, folders, incremental, jobs, mutmut, python, threshold",
        ),
        ("jobs = 0", "msp-bridge.toml: jobs must be a whole number from 1 on, not 0"),
        ("jobs = -1", "msp-bridge.toml: jobs must be a whole number from 1 on, not -1"),
        ("jobs = 1.5", "msp-bridge.toml: jobs must be a whole number from 1 on, not 1.5"),
        ("jobs = true", "msp-bridge.toml: jobs must be a whole number from 1 on, not True"),
        ("jobs = '1'", "msp-bridge.toml: jobs must be a whole number from 1 on, not '1'"),
        ("cluster = 1", "msp-bridge.toml: cluster must be an address or a table, not 1"),
        ("cluster = {addres = 'a'}", "msp-bridge.toml, cluster: unknown key 'addres': did you mean 'address'?"),
        ("cluster = {address = 1}", "msp-bridge.toml, cluster: address must be a string, not 1"),
        ("cluster = {exclude = '*'}", "msp-bridge.toml, cluster: exclude must be a list of patterns of files, not '*'"),
        ("python = 3.11", "msp-bridge.toml: python must be a string, not 3.11"),
        ("adapter = 1", "msp-bridge.toml: adapter must be a name, or a list of names, not 1"),
        ("adapter = [1]", "msp-bridge.toml: adapter must be a name, or a list of names, not [1]"),
        ("adapter = 'mutmutt'", "msp-bridge.toml: there is no adapter 'mutmutt': did you mean 'mutmut'?"),
        ("adapter = 'x'", "msp-bridge.toml: there is no adapter 'x': choose from cosmic-ray, mutmut"),
        ("mutmut = 1", "msp-bridge.toml: mutmut must be a table, not 1"),
    ],
)
def test_each_mistake_is_an_error_with_what_would_be_right(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(own(tmp_path, text))
    assert str(caught.value) == says


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[tool.msp-bridge]\njbos = 1",
            "[tool.msp-bridge] of pyproject.toml: unknown key 'jbos': did you mean 'jobs'?",
        ),
        ("[tool]\nmsp-bridge = 1", "[tool.msp-bridge] of pyproject.toml must be a table"),
        ("tool = 1", "[tool] of pyproject.toml must be a table"),
    ],
)
def test_a_mistake_in_pyproject_is_an_error_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path)
    assert str(caught.value) == says


@pytest.mark.parametrize("content", [b"jobs = ", b"\xff\xfe", b"jobs = 1\njobs = 2"])
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "msp-bridge.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match="can't read") as caught:
        load(tmp_path)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("named", ["no/such.toml", "/no/such.toml", ".", "a\0b", "\ud800", "x" * 5000])
def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path, named: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"there is no configuration file .*: correct the path, or leave it out"
    ):
        load(tmp_path, named)


def test_a_third_party_plugin_is_found_beside_our_own() -> None:
    known = installed()
    assert known["scripted"].value == "support.scripted.scripted_adapter:Scripted"
    assert "mutmut" in known


def test_an_interpreter_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    configuration = Configuration(adapters=("scripted",), python=tmp_path / "no" / "python")
    with pytest.raises(ConfigurationError, match=r"there is no interpreter .*: correct the setting `python`"):
        detect(tmp_path, configuration, installed())


def test_a_directory_is_an_environment_and_no_other_is_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "scripted.json").write_text('{"mutations": []}')
    for name in (".venv", "other"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "pyvenv.cfg").touch()
        (tmp_path / name / "bin" / "python").touch(0o755)
    options = Configuration(adapters=("scripted",), python=tmp_path / "other")
    (adapter,) = detect(tmp_path, options, installed())
    assert adapter._project.python == tmp_path / "other" / "bin" / "python"  # type: ignore[attr-defined]
    with pytest.raises(ConfigurationError, match="there is no interpreter"):
        detect(tmp_path, Configuration(adapters=("scripted",), python=tmp_path), installed())


def test_the_error_in_a_directory_of_a_project_names_its_root(tmp_path: Path) -> None:
    (tmp_path / "scripted.json").write_text('{"mutations": []}')
    below = tmp_path / "src" / "shop"
    below.mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=f"; if {tmp_path} is the project, add `--root {tmp_path}`$"):
        detect(below, Configuration(), {"scripted": installed()["scripted"]})


@pytest.mark.parametrize("value", ["no_such_module:Adapter", "json:NoSuchClass"])
def test_a_broken_plugin_is_named(tmp_path: Path, value: str) -> None:
    broken = {"broken": EntryPoint("broken", value)}
    with pytest.raises(BridgeError, match=r"the adapter broken .* can't be loaded: .*: reinstall or remove it"):
        detect(tmp_path, Configuration(), broken)


class WithoutScope(Scripted):
    def discover(self):  # type: ignore[override]
        raise AssertionError


class OfAnEarlierVersion(Scripted):
    async def ignore(self, mutant):
        raise AssertionError


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("WithoutScope", r"discover\(self\) can't be called as discover\(self, scope"),
        ("OfAnEarlierVersion", r"ignore\(self, mutant\)"),
    ],
)
def test_a_plugin_of_another_version_of_the_api_is_named(tmp_path: Path, name: str, said: str) -> None:
    other = {"other": EntryPoint("other", f"{__name__}:{name}")}
    with pytest.raises(
        BridgeError, match=rf"the adapter other .* does not fit this version's API: .*{said}.*: update it"
    ):
        detect(tmp_path, Configuration(), other)


def test_an_adapter_gets_all_that_was_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "scripted.json").write_text('{"mutations": []}')
    tool_file = root / "x.cfg"
    configuration = Configuration(
        python=Path(sys.executable), jobs=3, tool_file=tool_file, settings={"scripted": {"a": 1}}
    )
    (adapter,) = detect(root, configuration, {"scripted": installed()["scripted"]})
    project = adapter._project  # type: ignore[attr-defined]
    assert (project.root, project.config_file, project.settings) == (root, tool_file, {"a": 1})
    assert (project.python, project.jobs) == (Path(sys.executable), 3)
    assert project.cache == cache_of(root) / "scripted"
    assert project.cache.is_relative_to(tmp_path / "cache")
    assert not project.cache.exists()


def test_the_cache_is_apart_for_each_project_and_never_within_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = tmp_path / "one" / "lib", tmp_path / "other" / "lib"
    for root in (one, other):
        root.mkdir(parents=True)
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    assert cache_of(one) != cache_of(other)
    assert cache_of(one) == cache_of(one)
    (tmp_path / "link").symlink_to(one)
    assert cache_of(tmp_path / "link") == cache_of(one)
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(one / "cache"))
    assert not cache_of(one).is_relative_to(one)
    assert f"the cache {one / 'cache'} would lie in {one}, where nothing is written: it is in " in caplog.text
    assert cache_of(other).is_relative_to(one / "cache")


def test_the_fingerprint_changes_with_each_file_that_decides(tmp_path: Path) -> None:
    seen = {fingerprint(tmp_path, "x.cfg")}
    for name in ("msp-bridge.toml", "pyproject.toml", "setup.cfg", "x.cfg"):
        (tmp_path / name).write_text("a")
        seen.add(fingerprint(tmp_path, "x.cfg"))
        (tmp_path / name).write_text("b")
        seen.add(fingerprint(tmp_path, "x.cfg"))
    assert len(seen) == 9
    assert fingerprint(tmp_path, "x.cfg") in seen
    (tmp_path / "unrelated").touch()
    assert fingerprint(tmp_path, "x.cfg") in seen


@pytest.mark.parametrize("named", ["a\0b", "\ud800", "x" * 5000])
def test_a_name_that_no_file_can_have_breaks_no_fingerprint(tmp_path: Path, named: str) -> None:
    assert fingerprint(tmp_path, named) == fingerprint(tmp_path, named)
