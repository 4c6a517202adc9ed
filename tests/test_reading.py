"""Reading: whatever stands where a file of the project should be, the answer is its content or an error."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from msp_bridge import reading
from msp_bridge.workspace.configuration import Configuration, fingerprint
from msp_bridge.workspace.detection import detect_projects


@contextlib.contextmanager
def listening(file: Path) -> Iterator[None]:
    """A socket that stands in the tree."""
    with contextlib.chdir(file.parent), socket.socket(socket.AF_UNIX) as server:  # the name of one must be short
        server.bind(file.name)
        yield


def test_the_text_is_as_it_stands_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"\xef\xbb\xbfa\r\nb\n")
    assert reading.content(file) == b"\xef\xbb\xbfa\r\nb\n"
    assert reading.text(file, "utf-8-sig") == "a\r\nb\n"


@pytest.mark.parametrize("kind", ["fifo", "directory", "device", "socket", "nothing"])
@pytest.mark.parametrize("read", [reading.content, reading.text, reading.toml, reading.json_value])
def test_what_is_no_file_is_an_error_at_once(read: object, kind: str, tmp_path: Path) -> None:
    assert callable(read)
    file = tmp_path / "odd"
    with contextlib.ExitStack() as stack:
        if kind == "fifo":
            os.mkfifo(file)
        elif kind == "directory":
            file.mkdir()
        elif kind == "device":
            file.symlink_to("/dev/zero")
        elif kind == "socket":
            stack.enter_context(listening(file))
        with pytest.raises(OSError, match="odd"):
            read(file)


def test_who_waits_to_write_to_a_pipe_goes_on_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(["sh", "-c", 'exec 3>"$1"; echo open', "sh", pipe], stdout=subprocess.PIPE)
    try:
        for _ in range(20):
            with pytest.raises(OSError, match="it is no regular file"):
                reading.content(pipe)
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(0.05)
    finally:
        writer.kill()
        writer.communicate()


@pytest.mark.parametrize(
    ("read", "text"), [(reading.toml, "a = " + "[" * 100_000), (reading.json_value, '{"a": ' * 100_000)]
)
def test_what_is_nested_too_deeply_is_wrong_as_any_other_content(read: object, text: str, tmp_path: Path) -> None:
    assert callable(read)
    file = tmp_path / "deep"
    file.write_text(text)
    with pytest.raises(ValueError, match="it is nested too deeply"):
        read(file)
    file.write_text("[")
    with pytest.raises(ValueError):  # noqa: PT011  (what the parser says)
        read(file)


@pytest.mark.parametrize("name", ["msp-bridge.toml", "pyproject.toml", "package.json", "setup.cfg", "cosmic-ray.toml"])
def test_a_pipe_in_the_place_of_a_configuration_keeps_nobody_waiting(name: str, tmp_path: Path) -> None:

    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    (root / "package.json").write_text('{"devDependencies": {"@stryker-mutator/core": "*"}}')
    os.mkfifo(root / "sub" / name)
    projects = detect_projects(root, Configuration())
    assert fingerprint(root, f"sub/{name}", [folder.path for folder in projects.folders])
    assert projects.tools[0].label == "stryker-js"
