"""The life of survivors with real tools, as docs/how-to/survivors.md has it: found, killed, accepted, ignored, and a gate."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from support.command_line import in_process
from support.stryker_js_trees import CORE9


@frozen
class Shop:
    """A project whose survivors are at the limit of line 2, at that of line 8, and in `limits`."""

    files: dict[str, str]
    source: str
    code: str
    tests: str
    test_code: str
    test: str  # the one that runs line 2
    mutated: str  # line 2 with its survivor
    at_the_limit: str  # a test that kills it
    ignored: tuple[str, str]  # what is replaced to ignore the mutants of `limits`
    new: str  # code for the top, with a survivor in its line 5
    new_test: str  # that runs it
    modules: Path | None = None


MUTMUT = Shop(
    files={"pyproject.toml": '[tool.mutmut]\nsource_paths = ["shop.py"]\n'},
    source="shop.py",
    code="""\
def shipping(amount):
    if amount >= 50:
        return 0
    return 5


def larger(a, b):
    return a if a >= b else b


def limits():
    return 10
""",
    tests="tests/test_shop.py",
    test_code="""\
from shop import larger, limits, shipping


def test_shipping():
    assert (shipping(10), shipping(60)) == (5, 0)


def test_larger():
    assert (larger(1, 2), larger(2, 1)) == (2, 2)


def test_limits():
    limits()
""",
    test="tests/test_shop.py::test_shipping",
    mutated="    if amount > 50:",
    at_the_limit="\n\ndef test_at_the_limit():\n    assert (shipping(49), shipping(50)) == (5, 0)\n",
    ignored=("return 10", "return 10  # pragma: no mutate"),
    new="LIMIT = 1\n\n\ndef double(a):\n    return a * 2\n\n\n",
    new_test="\n\ndef test_double():\n    from shop import double\n\n    double(2)\n",
)
STRYKER_JS = Shop(
    files={
        "package.json": '{"private": true, "scripts": {"test": "mocha"}}\n',
        "stryker.config.json": json.dumps(
            {"mutate": ["shop.js"], "testRunner": "mocha", "plugins": ["@stryker-mutator/mocha-runner"]}
        ),
    },
    source="shop.js",
    code="""\
exports.shipping = (amount) => {
  if (amount >= 50) {
    return 0;
  }
  return 5;
};
exports.larger = (a, b) => {
  return a >= b ? a : b;
};
exports.limits = () => 'many';
""",
    tests="test/shop.spec.js",
    test_code="""\
const { deepEqual } = require('node:assert');
const shop = require('../shop');

it('ships', () => deepEqual([shop.shipping(10), shop.shipping(60)], [5, 0]));
it('takes the larger', () => deepEqual([shop.larger(1, 2), shop.larger(2, 1)], [2, 2]));
it('has limits', () => void shop.limits());
""",
    test="ships",
    mutated="  if (amount > 50) {",
    at_the_limit="it('is free at the limit', () => deepEqual([shop.shipping(49), shop.shipping(50)], [5, 0]));\n",
    ignored=("exports.limits", "// Stryker disable next-line all: any will do\nexports.limits"),
    new="const LIMIT = 1;\n\n\n\nexports.double = (a) => a * 2;\n",
    new_test="it('doubles', () => void shop.double(2));\n",
    modules=CORE9,
)


def bridge(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return in_process(root, root, *arguments)


def survivors(root: Path, *paths: str) -> list[dict[str, Any]]:
    done = bridge(root, "results", *paths, "--status", "Survived", "--json", "-")
    assert done.returncode == 0, done.stderr
    return [mutant for file in json.loads(done.stdout)["files"].values() for mutant in file["mutants"]]


@pytest.mark.parametrize("shop", [MUTMUT, STRYKER_JS], ids=["mutmut", "stryker-js"])
def test_survivors_are_killed_accepted_and_ignored_until_the_gate_is_green(shop: Shop, tmp_path: Path) -> None:
    root = tmp_path / "project"
    source, tests = root / shop.source, root / shop.tests
    tests.parent.mkdir(parents=True)
    for path, text in (shop.files | {shop.source: shop.code, shop.tests: shop.test_code}).items():
        (root / path).write_text(text)
    if shop.modules is not None:
        (root / "node_modules").symlink_to(shop.modules)
    found = bridge(root, "run", "--no-new-survivors")
    assert found.returncode == 1, found.stderr
    assert "survivors are not accepted" in found.stderr
    assert re.search(rf"^next: msp-bridge show {shop.source}:\d+:\d+$", found.stdout, re.MULTILINE)

    shown = bridge(root, "show", f"{shop.source}:2").stdout  # a survivor, with its tests
    assert f"+{shop.mutated}\n" in shown
    assert f"covered by  {shop.test}\n" in shown

    tests.write_text(shop.test_code + shop.at_the_limit)  # a test is written, and kills
    again = bridge(root, "run", "--status", "Survived", f"{shop.source}:2")
    assert "Killed" in again.stdout
    assert survivors(root, f"{shop.source}:2") == []
    history = bridge(root, "show", f"{shop.source}:2").stdout
    assert re.search(r"history  Killed \([^)]*\), Survived", history)
    assert "newly survived" in bridge(root, "diff").stdout

    accepted = bridge(root, "accept", f"{shop.source}:8", "--reason", "both are equal there")  # another is accepted
    assert accepted.returncode == 0, accepted.stderr
    source.write_text(shop.code.replace(*shop.ignored))  # the third is ignored
    green = bridge(root, "run", "--no-new-survivors", "--threshold", "100")
    assert green.returncode == 0, green.stdout + green.stderr
    assert re.search(r"^accepted +1 \(survivors\)", green.stdout, re.MULTILINE)

    source.write_text(f"{shop.new}{source.read_text()}")  # a new one
    tests.write_text(tests.read_text() + shop.new_test)
    red = bridge(root, "run", "--no-new-survivors")
    assert red.returncode == 1, red.stdout
    assert {mutant["location"]["start"]["line"] for mutant in survivors(root)} == {5}
    compared = json.loads(bridge(root, "diff", "--json").stdout)
    assert {mutant["line"] for mutant in compared["newlySurvived"]} == {5}
    assert len((root / "mutants-accepted.toml").read_text().split("[[accepted]]")) == 2
