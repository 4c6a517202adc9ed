"""Where below a directory there may be projects."""

import os

import pytest
from support.scripted_trees import Tree

from msp_bridge.workspace.tree import folders_with


def test_the_nearest_come_first_and_the_root_is_not_among_them(tree: Tree) -> None:
    for path in ("x.json", "a/b/x.json", "c/x.json", "c/y.json", "d/y.toml"):
        tree.write(path)
    assert list(folders_with(str(tree.root), ["x.json"])) == ["c/", "a/b/"]
    assert list(folders_with(str(tree.root), ["*.toml", "y.*"])) == ["c/", "d/"]
    assert list(folders_with(str(tree.root), [])) == []


def test_what_is_generated_or_hidden_or_an_environment_is_not_looked_into(tree: Tree) -> None:
    for folder in ("node_modules/p", ".git", "web/dist", "web/.cache", "env", "cache", "target/x", "testdata/x"):
        tree.write(f"{folder}/x.json")
    tree.write("env/pyvenv.cfg")
    tree.write("cache/CACHEDIR.TAG")
    assert list(folders_with(str(tree.root), ["x.json"])) == []


def test_links_to_directories_are_not_followed(tree: Tree) -> None:
    tree.write("a/x.json")
    os.symlink(tree.root, tree.root / "a" / "loop")
    assert list(folders_with(str(tree.root), ["x.json"])) == ["a/"]


def test_a_tree_that_is_too_large_is_searched_no_further(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("msp_bridge.workspace.tree.MAX_LOOKS", 3)
    for folder in "abcd":
        tree.write(f"{folder}/x.json")
    assert list(folders_with(str(tree.root), ["x.json"])) == ["a/", "b/"]
    assert "open the folder of a project" in caplog.text
