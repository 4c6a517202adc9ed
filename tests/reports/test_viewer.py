"""The viewer comes from npm's directories when it is there, and from a CDN, to the byte, when it isn't."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest
from support.viewers import needs_npm, npm_install

from msp_bridge.reports.viewer import INTEGRITY, PACKAGE, SCRIPT, URL, Viewer


def install(directory: Path, version: str, script: bytes = b"viewer()") -> None:
    package = directory / PACKAGE
    (package / SCRIPT).parent.mkdir(parents=True)
    (package / SCRIPT).write_bytes(script)
    (package / "package.json").write_text(json.dumps({"version": version}))


@pytest.fixture(autouse=True)
def nothing_global(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NODE_PATH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_without_an_install_it_is_the_pinned_one_with_its_hash(tmp_path: Path) -> None:
    viewer = Viewer.find(tmp_path)
    assert viewer.needs_network
    assert viewer.element == f'<script src="{URL}" integrity="{INTEGRITY}" crossorigin="anonymous"></script>'


def test_an_install_above_the_project_is_found(tmp_path: Path) -> None:
    install(tmp_path / "node_modules", "3.8.4")
    viewer = Viewer.find(tmp_path / "packages" / "shop")
    assert viewer.script == b"viewer()"
    assert not viewer.needs_network


def test_the_nearest_install_is_taken(tmp_path: Path) -> None:
    install(tmp_path / "node_modules", "3.8.4")
    install(tmp_path / "shop" / "node_modules", "3.9.0", b"nearest()")
    assert Viewer.find(tmp_path / "shop").script == b"nearest()"


@pytest.mark.parametrize("version", ["1.7.14", "latest"])
def test_an_install_that_is_too_old_or_odd_is_left(tmp_path: Path, version: str) -> None:
    install(tmp_path / "node_modules", version)
    assert Viewer.find(tmp_path).needs_network


def test_an_install_without_the_script_is_left(tmp_path: Path) -> None:
    install(tmp_path / "node_modules", "3.9.0")
    (tmp_path / "node_modules" / PACKAGE / SCRIPT).unlink()
    assert Viewer.find(tmp_path).needs_network


def test_a_global_install_is_found_beside_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = tmp_path / "prefix" / "bin" / "node"
    node.parent.mkdir(parents=True)
    node.touch(mode=0o755)
    install(tmp_path / "prefix" / "lib" / "node_modules", "3.9.0")
    monkeypatch.setenv("PATH", str(node.parent))
    assert Viewer.find(tmp_path / "project").script == b"viewer()"


def test_no_text_of_a_script_can_end_its_element(tmp_path: Path) -> None:
    install(tmp_path / "node_modules", "3.9.0", b"'</script><!-- <script>'")
    element = Viewer.find(tmp_path).element
    assert element.count("<script") == element.count("</script") == 1


@needs_npm
def test_the_pinned_hash_is_that_of_the_file_in_the_npm_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    viewer = Viewer.find(npm_install(tmp_path))
    assert viewer.script is not None
    assert f"sha384-{base64.b64encode(hashlib.sha384(viewer.script).digest()).decode()}" == INTEGRITY
