"""Real code with its own tests: a library of Python, an application of a web framework, and a library of npm."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.environments import environment, repair
from support.stryker_js_trees import CORE9, adapter_on, discovered, results_of

from msp_bridge.adapter import Mutant, Result, Status

PROJECTS = Path(__file__).parents[1] / "projects"
REQUIREMENT = "inflection==0.5.1 --hash=sha256:1a29730d366e996aaacffb2f1f1cb9593dc38e2ddd30c91250c6dde09ea9b417\n"
CONFIGURATION = '{"testRunner": "mocha", "mutate": ["index.js"], "plugins": ["@stryker-mutator/mocha-runner"]}'
VERIFIED = 20


def inflection(home: Path) -> Path:
    """The sdist's tree, in a directory named as the library is."""
    (home / "requirements.txt").write_text(REQUIREMENT)
    download = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "--require-hashes"]
    subprocess.run([*download, "-q", "-r", "requirements.txt"], cwd=home, check=True, stdin=subprocess.DEVNULL)
    with tarfile.open(next(home.glob("*.tar.gz"))) as sdist:
        sdist.extractall(home, filter="data")
    library = next(home.glob("inflection-*/")).rename(home / "inflection")
    with (library / "setup.cfg").open("a") as configuration:
        configuration.write("\n[mutmut]\n")
    return library


def django_shop(home: Path) -> Path:
    """Most of the code of such an application is imported by the tests, and not before them."""
    return Path(shutil.copytree(PROJECTS / "django_shop", home / "django_shop"))


@pytest.mark.parametrize("laid_out", [inflection, django_shop])
def test_mutants_have_covering_tests_and_true_verdicts(laid_out: Callable[[Path], Path], tmp_path: Path) -> None:
    root = laid_out(tmp_path)
    python = environment(tmp_path / "environment")
    repair(python)
    if (root / "requirements.txt").exists():
        install = [f"{sys.prefix}/bin/uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python)]
        subprocess.run([*install, "-r", str(root / "requirements.txt")], check=True)
    run = [sys.executable, "-m", "msp_bridge", "run", "--adapter", "mutmut"]
    run += ["--json", "../report.json", "--verify", str(VERIFIED)]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    variables |= {"VIRTUAL_ENV": str(tmp_path / "environment"), "MSP_BRIDGE_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(run, cwd=root, env=variables, capture_output=True, text=True)
    assert f"verified {VERIFIED} mutants in fresh processes: 0 differ" in done.stdout, done.stdout + done.stderr
    files = json.loads((tmp_path / "report.json").read_text())["files"]
    killed = [mutant for file in files.values() for mutant in file["mutants"] if mutant["status"] == "Killed"]
    covering = [mutant["coveredBy"] for mutant in killed if "coveredBy" in mutant]  # an early kill does not know it yet
    assert covering
    assert all(covering)


async def test_each_verdict_of_strykerjs_is_that_of_a_fresh_process(tmp_path: Path) -> None:
    """Mutants of index.js pollute Object.prototype; the verdicts of these depend on that."""
    library = Path(shutil.copytree(CORE9 / "json-pointer", tmp_path / "json-pointer"))
    (library / "node_modules").symlink_to(CORE9)
    (library / "stryker.conf.json").write_text(CONFIGURATION)
    places = {(33, "true"), (78, "true"), (78, '""'), (81, "false"), (81, '""'), (98, "true"), (219, "false")}
    async with adapter_on(library, jobs=2) as adapter:
        mutants = await discovered(adapter)
        some = [mutant for mutant in mutants if (mutant.location.start.line, mutant.replacement) in places]
        assert len(some) >= len(places)
        whole = statuses(await results_of(adapter, mutants))
        warm = statuses(await results_of(adapter, some))
    (library / "stryker.conf.json").write_text(CONFIGURATION.replace("{", '{"maxTestRunnerReuse": 1, ', 1))
    async with adapter_on(library, jobs=2) as adapter:
        await discovered(adapter)
        fresh = statuses(await results_of(adapter, some))
    assert {mutant: whole[mutant] for mutant in some} == warm == fresh


def statuses(results: list[Result]) -> dict[Mutant, Status]:
    return {result.mutant: result.status for result in results}
