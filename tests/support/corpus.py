"""The projects of the corpus, and what fresh processes say of their mutants.

A fresh process for each mutant is most of what the corpus costs. So the verdicts of fresh processes are kept in
`tests/corpus/verdicts.json`, for a digest of the project and for the versions of Python and pytest. A kept verdict can
only confirm a result: where the two differ, or where none is kept, fresh processes decide. `make test-all` tests a
mutant of each project anew, and fails where a fresh process says something else than the file; `make corpus` tests all,
and writes the file.
"""

import fcntl
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from msp_bridge.adapter import BaselineError, Mutant, Result
from msp_bridge.testing import Oracle, Verdict, pytest_command

PYTHON = Path(os.environ.get("MSP_BRIDGE_CORPUS_PYTHON", sys.executable))  # of the projects
CORPUS = Path(__file__).parent.parent / "corpus"
KINDS = sorted(path.name for path in CORPUS.iterdir() if path.is_dir())
KEPT = CORPUS / "verdicts.json"
WRITE = "MSP_BRIDGE_CORPUS_WRITE"  # this variable is set to write KEPT anew
ATTEMPTS = 5  # at a run without a mutant, of a suite that fails by chance
BY_CHANCE = "flaky"  # the project whose verdicts differ from run to run: none is kept
SAY_VERSIONS = "import sys, pytest; print('{}.{}'.format(*sys.version_info), 'pytest', pytest.__version__)"
SAY_BUILD = "import sysconfig; print(sysconfig.get_path('include'), sysconfig.get_config_var('EXT_SUFFIX'), sep='\\n')"


def project_of(kind: str, directory: Path) -> Path:
    """Copy the project, and build it where it has something to build."""
    root = Path(shutil.copytree(CORPUS / kind, directory / kind))
    for source in root.rglob("*.c"):
        compiler = shutil.which("cc")
        include, suffix = _said_by_python(SAY_BUILD).split()
        if compiler is None or not Path(include, "Python.h").exists():
            pytest.skip("no compiler, or no headers of Python, for a C extension")
        built = source.with_name(source.stem + suffix)
        subprocess.run([compiler, "-shared", "-fPIC", f"-I{include}", source, "-o", built], check=True)
    return root


def modules_of(kind: str) -> int:
    """How many files of it have code to mutate."""
    files = [file for file in (CORPUS / kind).rglob("*.py") if "tests" not in file.relative_to(CORPUS).parts]
    return max(1, sum(file.stat().st_size > 0 for file in files))


@define
class Truths:
    """What fresh processes say of the corpus. Each mutant is tested in one once, for all tests that share this."""

    directory: Path  # for copies of the projects
    anew: int  # the mutants of a project that are tested in fresh processes whatever is kept
    _oracles: dict[str, Oracle] = field(factory=dict)
    _verdicts: dict[Mutant, Verdict] = field(factory=dict)

    async def differences(self, kind: str, results: Iterable[Result], most: int) -> list[str]:
        """Check `most` of the results of each module, the same ones each time; returns a line for each that is wrong."""
        drawn = _drawn(results, most * modules_of(kind))
        assert drawn
        anew, rest = drawn[: self.anew], drawn[self.anew :]
        kept = {} if os.environ.get(WRITE) else _kept(kind)
        doubtful = [result for result in rest if kept.get(result.mutant.id) is not result.status.detected]
        if not (anew or doubtful):
            return []
        oracle = await self._oracle_of(kind)
        verification = await oracle.compare([*anew, *doubtful], jobs=2, known=self._verdicts)
        if kind != BY_CHANCE and anew:
            self._compare_with_kept(kind, [result.mutant for result in (*anew, *doubtful)])
        return [str(difference) for difference in verification.differences]

    async def _oracle_of(self, kind: str) -> Oracle:
        if kind not in self._oracles:
            root = project_of(kind, self.directory)
            for attempt in range(ATTEMPTS):
                try:
                    self._oracles[kind] = await Oracle.of(root, pytest_command(PYTHON))
                    break
                except BaselineError:
                    if kind != BY_CHANCE or attempt == ATTEMPTS - 1:
                        raise
        return self._oracles[kind]

    def _compare_with_kept(self, kind: str, mutants: Sequence[Mutant]) -> None:
        fresh = {mutant.id: self._verdicts[mutant].status.detected for mutant in mutants}
        if os.environ.get(WRITE):
            _keep(kind, fresh)
            return
        kept = _kept(kind)
        wrong = [mutant for mutant in mutants if kept.get(mutant.id, fresh[mutant.id]) is not fresh[mutant.id]]
        assert wrong == [], f"{KEPT} says otherwise than a fresh process: `make corpus` writes it anew"


def _drawn(results: Iterable[Result], most: int) -> list[Result]:
    """Draw results with a verdict, independent of the order in which they came."""
    with_verdict = [result for result in results if result.status.detected or result.status.undetected]
    with_verdict.sort(key=lambda result: result.mutant.id)
    return random.Random(0).sample(with_verdict, min(most, len(with_verdict)))


def _kept(kind: str) -> dict[str, bool]:
    """Whether a fresh process kills the mutant, by the mutant's id."""
    entry = json.loads(KEPT.read_text()).get(kind, {}) if KEPT.exists() else {}
    if entry.get("project") != _digest(kind):
        return {}
    return {identity: word == "killed" for identity, word in entry["verdicts"].get(_versions(), {}).items()}


def _keep(kind: str, fresh: dict[str, bool]) -> None:
    with _locked(KEPT):
        kinds: dict[str, Any] = json.loads(KEPT.read_text() or "{}")
        entry = kinds.get(kind, {})
        if entry.get("project") != _digest(kind):
            entry = kinds[kind] = {"project": _digest(kind), "verdicts": {}}
        words = {identity: "killed" if killed else "survived" for identity, killed in fresh.items()}
        entry["verdicts"].setdefault(_versions(), {}).update(words)
        KEPT.write_text(json.dumps(kinds, indent=0, sort_keys=True) + "\n")


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold the file alone: tests of other projects write it, too."""
    with file.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def _digest(kind: str) -> str:
    found = blake2b(digest_size=16)
    for file in sorted((CORPUS / kind).rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            found.update(f"{file.relative_to(CORPUS)}\0{file.stat().st_size}\0".encode() + file.read_bytes())
    return found.hexdigest()


@cache
def _versions() -> str:
    """The versions of Python and pytest that the projects are tested with."""
    return _said_by_python(SAY_VERSIONS).strip()


def _said_by_python(program: str) -> str:
    return subprocess.run([PYTHON, "-c", program], check=True, capture_output=True, text=True).stdout
