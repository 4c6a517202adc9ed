"""One report made of several: of the shards of a CI job, or of the same mutants tested in several ways.

A shard is a part of the mutants that one of several jobs tests. `Shard` says which; `incomplete` says whether the
reports of all of them are there; `merged` joins them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

from attrs import define, field, frozen

import msp_bridge
from msp_bridge.model import Mutant, Status
from msp_bridge.reports.standard import THRESHOLDS, start_of
from msp_bridge.rows import reported_mutant

TEXT = re.compile(r"(\d+)/(\d+)")
KEY = "shard"  # in a report's `config`
MAX_NAMED = 10  # of the shards that are missing
STRONGEST_FIRST = (  # what one report killed is killed; a verdict goes before the lack of one
    Status.KILLED,
    Status.TIMEOUT,
    Status.SURVIVED,
    Status.NO_COVERAGE,
    Status.RUNTIME_ERROR,
    Status.COMPILE_ERROR,
    Status.IGNORED,
    Status.PENDING,
)
RANK = {status.value: rank for rank, status in enumerate(STRONGEST_FIRST)}

Fields = dict[str, Any]


@frozen
class Shard:
    """Part `number` (from 1) of `of`.

    Every N-th mutant in the order of their ids, which is random, is in one shard. So every shard has the same
    number, give or take one, and its fair part of each file: files differ in how long their mutants take. Each shard
    must be of the same mutants, as on the same commit: `fingerprint` shows whether that was so.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `K/N`; raises ValueError."""
        match = TEXT.fullmatch(text.strip())
        shard = cls(int(match[1]), int(match[2])) if match else None
        if shard is None or not 1 <= shard.number <= shard.of:
            raise ValueError(f"{text!r} is not K/N, part K of N, as 1/4")
        return shard

    def take(self, mutants: Iterable[Mutant]) -> set[Mutant]:
        """The mutants of this part."""
        return set(sorted(mutants, key=lambda mutant: mutant.id)[self.number - 1 :: self.of])

    def config(self, mutants: Iterable[Mutant]) -> dict[str, Any]:
        """The configuration in a report; `mutants` are those of all parts."""
        return {KEY: {"number": self.number, "of": self.of, "of mutants": fingerprint(mutants)}}


def fingerprint(mutants: Iterable[Mutant]) -> str:
    """The same for the same mutants."""
    ids = "\n".join(sorted(mutant.id for mutant in mutants))
    return blake2b(ids.encode(), digest_size=8).hexdigest()


def incomplete(configs: Iterable[Mapping[str, Any]]) -> str | None:
    """Why the reports with these `config`s are no whole; None when they are, or when none is of a shard."""
    shards = [shard for shard in map(_shard_of, configs) if shard is not None]
    if not shards:
        return None
    if len({(shard.of, of_mutants) for shard, of_mutants in shards}) > 1:
        return "they are shards of different sets of mutants: run every shard on the same commit, with the same options"
    of = shards[0][0].of
    present = {shard.number for shard, _ in shards}
    missing = (f"{number}/{of}" for number in range(1, of + 1) if number not in present)
    match list(islice(missing, MAX_NAMED)):
        case []:
            return None
        case [one]:
            return f"the report of shard {one} is missing"
        case several:
            return f"the reports of shards {', '.join(several)} are missing"


class Unmergeable(Exception):
    """The reports don't belong together; the message says why."""


@frozen
class NamedReport:
    """A valid report, and what to call it in messages."""

    name: str
    report: Mapping[str, Any]


def merged(reports: Sequence[NamedReport]) -> Fields:
    """One report of all their mutants, each once, with the strongest of its results. Raises Unmergeable.

    The paths must be relative to the same root, wherever that lay: a path with two sources is two projects.
    """
    configs = [named.report.get("config", {}) for named in reports]
    if reason := incomplete(configs):
        raise Unmergeable(reason)
    files, tests = _Files(), _Tests()
    for named in reports:
        tests.add(named)
        files.add(named)
    for file in files.by_path.values():
        file["mutants"].sort(key=start_of)
    result = {
        "schemaVersion": "2",
        "thresholds": THRESHOLDS,
        "framework": {"name": "msp-bridge", "version": msp_bridge.__version__},
        "files": dict(sorted(files.by_path.items())),
        "testFiles": dict(sorted(tests.by_path.items())),
    }
    for key, values in (
        ("projectRoot", [named.report.get("projectRoot") for named in reports]),
        ("config", [{name: value for name, value in config.items() if name != KEY} for config in configs]),
    ):
        if values[0] and all(value == values[0] for value in values):
            result[key] = values[0]
    return result


@define
class _Files:
    by_path: dict[str, Fields] = field(factory=dict)
    _reporters: dict[str, str] = field(factory=dict)  # of a path: the report with its source
    _places: dict[Mutant, tuple[list[Fields], int]] = field(factory=dict)
    _ids: set[str] = field(factory=set)

    def add(self, named: NamedReport) -> None:
        for path, theirs in named.report["files"].items():
            ours = self.by_path.setdefault(path, {**theirs, "mutants": []})
            first = self._reporters.setdefault(path, named.name)
            if ours["source"] != theirs["source"]:
                raise Unmergeable(
                    f"{path} in {named.name} is not the text that it is in {first}: merge reports on the same sources, "
                    "relative to the same root"
                )
            for fields in theirs["mutants"]:
                self._add(reported_mutant(path, fields), ours["mutants"], fields)

    def _add(self, mutant: Mutant, mutants: list[Fields], fields: Fields) -> None:
        if mutant in self._places:
            of_file, index = self._places[mutant]
            present = of_file[index]
            if RANK[fields["status"]] < RANK[present["status"]]:
                of_file[index] = {**fields, "id": present["id"]}
            return
        if fields["id"] in self._ids:  # of another mutant: some tools number theirs anew in each run
            fields = {**fields, "id": mutant.id}
        self._ids.add(fields["id"])
        self._places[mutant] = mutants, len(mutants)
        mutants.append(fields)


@define
class _Tests:
    by_path: dict[str, Fields] = field(factory=dict)
    _known: dict[str, tuple[str, str]] = field(factory=dict)  # by id: file and name

    def add(self, named: NamedReport) -> None:
        for path, theirs in named.report.get("testFiles", {}).items():
            for test in theirs["tests"]:
                if self._known.setdefault(test["id"], (path, test["name"])) != (path, test["name"]):
                    raise Unmergeable(
                        f"test {test['id']} in {named.name} is not the test that it is in another report: "
                        "merge reports of one tool on one test suite"
                    )
            ours = self.by_path.setdefault(path, {**theirs, "tests": []})
            present = {test["id"] for test in ours["tests"]}
            ours["tests"] += [test for test in theirs["tests"] if test["id"] not in present]


def _shard_of(config: Mapping[str, Any]) -> tuple[Shard, str] | None:
    """The shard, and the fingerprint of all its mutants; None when another tool has written the `config`."""
    match config.get(KEY):
        case {"number": int(number), "of": int(of), "of mutants": str(of_mutants)}:
            return Shard(number, of), of_mutants
    return None
