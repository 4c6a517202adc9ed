"""What can be said of the image without building it; `make docker-test` (docker/test_image.py) runs it for real."""

import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import psutil
import pytest

import msp_bridge

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
LAUNCHER = (ROOT / "docker/launcher.py").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def copied() -> set[str]:
    """What the image is made of."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
    return {source for line in lines for source in line.split()[:-1]}


def dependencies(name: str, seen: set[str]) -> Iterator[metadata.Distribution]:
    """What is installed when `name` is, without extras."""
    for line in metadata.requires(name) or []:
        needed = re.match(r"[\w.-]+", line)
        assert needed is not None
        if "extra ==" in line or needed[0].lower() in seen:
            continue
        seen.add(needed[0].lower())
        try:
            yield metadata.distribution(needed[0])
        except metadata.PackageNotFoundError:  # it is for another system
            continue
        yield from dependencies(needed[0], seen)


def test_the_build_sees_what_it_copies_and_nothing_else() -> None:
    allowed = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert sorted(allowed) == sorted(copied())
    assert [source for source in copied() if not (ROOT / source).exists()] == []
    needed = ("README.md", "forge_links.py", "setup.py", *PROJECT["license-files"])
    assert [file for file in needed if not {file, *map(str, Path(file).parents)} & copied()] == []


def test_the_image_starts_as_documented() -> None:
    assert DOCKERFILE.endswith('ENTRYPOINT ["msp-bridge"]\nCMD ["serve", "stdio"]\n')
    final = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.findall(r"^USER (.+)$", final, re.MULTILINE) == ["1000"]  # a number, so that "not root" can be checked


def test_the_launcher_knows_the_versions_that_are_there() -> None:
    looped = re.search(r"for version in ([\d. ]+);", DOCKERFILE)
    known = re.search(r"^VERSIONS = \[(.+)\]", LAUNCHER, re.MULTILINE)
    assert looped is not None
    assert known is not None
    versions = [f"{major}.{minor}" for major, minor in re.findall(r"\((\d+), (\d+)\)", known[1])]
    assert versions == sorted(looped[1].split(), key=lambda text: int(text.split(".")[1]), reverse=True)
    assert PROJECT["requires-python"] == f">={versions[-1]}"


def test_orjson_alone_is_compiled_for_one_version_of_python() -> None:
    """Else the image's directory would not run with the others: the Dockerfile must fetch more."""
    compiled = {
        distribution.name
        for distribution in dependencies("msp-bridge", set())
        for file in distribution.files or []
        if re.search(r"\.(cpython-\d+|cp\d+)-.*\.(so|pyd)$", file.name)
    }
    assert compiled == {"orjson"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """As /opt/msp-bridge in the image, with this interpreter's packages."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    packages = {Path(msp_bridge.__file__).parent}
    for distribution in [*dependencies("msp-bridge", set()), metadata.distribution("msp-bridge")]:
        tops = {file.parts[0] for file in distribution.files or [] if ".." not in file.parts}
        packages |= {Path(str(distribution.locate_file(top))) for top in tops if top != "__pycache__"}
    for package in packages:
        if package.suffix != ".pth":
            (tmp_path / "lib" / package.name).symlink_to(package)
    return tmp_path


def launch(
    directory: Path, text: str = LAUNCHER, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    launcher = directory / "bin/msp-bridge"
    launcher.write_text(text)
    argv = [sys._base_executable, "-I", str(launcher), "--version"]  # type: ignore[attr-defined]
    return subprocess.run(argv, cwd=directory, env=environment, capture_output=True, text=True, timeout=60)


def test_the_launcher_starts_the_bridge_beside_it(directory: Path) -> None:
    done = launch(directory)
    assert (done.returncode, done.stdout) == (0, f"msp-bridge, version {msp_bridge.__version__}\n"), done.stderr


def test_a_system_that_it_was_not_made_for_is_reported_in_one_sentence(directory: Path) -> None:
    (directory / "lib/orjson").unlink()
    done = launch(directory)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        r"msp-bridge: this copy was made for another .*: python3 -m pip install msp-bridge\n", done.stderr
    )


def test_an_old_python_is_reported_in_one_sentence(directory: Path) -> None:
    future = re.sub(r"^VERSIONS = .*", "VERSIONS = [(9, 9), (9, 8)]", LAUNCHER, flags=re.MULTILINE)
    done = launch(directory, future)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("msp-bridge: needs Python 9.8 to 9.9, and ")


def test_an_old_python_hands_over_to_a_newer_one(directory: Path) -> None:
    newer = directory / "newer/python9.9"
    newer.parent.mkdir()
    newer.write_text('#!/bin/sh\necho "$@"\n')
    newer.chmod(0o755)
    future = re.sub(r"^VERSIONS = .*", "VERSIONS = [(9, 9), (9, 8)]", LAUNCHER, flags=re.MULTILINE)
    done = launch(directory, future, {"PATH": f"{newer.parent}:/usr/bin:/bin"})
    assert done.stdout == f"-I {directory}/bin/msp-bridge --version\n", done.stderr


def namespaces() -> bool:
    """Whether a process may be PID 1 here, as in a container."""
    made = shutil.which("unshare") and subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True)
    return bool(made) and made.returncode == 0


BRIDGE = """
import os, subprocess, sys, time

def main():
    code = "import os; pid = os.fork(); print(pid) if pid else os._exit(0)"
    orphan = int(subprocess.check_output([sys.executable, "-c", code]))
    try:
        while True:
            os.kill(orphan, 0)
            time.sleep(0.01)
    except ProcessLookupError:
        print("reaped by", os.getppid(), flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(not namespaces(), reason="only root may make PID namespaces here")
def test_as_the_first_process_it_reaps_orphans_and_passes_signals_on(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    launcher = tmp_path / "bin/msp-bridge"
    launcher.write_text(LAUNCHER)
    package = tmp_path / "lib/msp_bridge"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(BRIDGE)
    (tmp_path / "lib/orjson").symlink_to(Path(str(metadata.distribution("orjson").locate_file("orjson"))))
    argv = ["unshare", "--pid", "--fork", "--kill-child", sys._base_executable, "-I", str(launcher)]  # type: ignore[attr-defined]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            assert running.stdout.readline() == "reaped by 1\n"
            [first] = psutil.Process(running.pid).children()
            first.send_signal(signal.SIGTERM)
            assert running.wait(60) == 128 + signal.SIGTERM  # it came, though the bridge has no handler for it
        finally:
            running.kill()  # and so all that is in there


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed")
def test_hadolint_has_nothing_to_say() -> None:
    done = subprocess.run(["hadolint", str(ROOT / "Dockerfile")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")
