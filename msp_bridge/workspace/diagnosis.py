"""Diagnosis: what `msp-bridge doctor` finds: the configuration first, then each tool of each folder."""

from __future__ import annotations

import contextlib
import os
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import evolve

from msp_bridge.adapter import Finding, Project
from msp_bridge.errors import BridgeError
from msp_bridge.workspace.adapters import installed, load
from msp_bridge.workspace.configuration import OWN_FILE, PYPROJECT, Configuration
from msp_bridge.workspace.folders import files_of
from msp_bridge.workspace.survey import Survey

DOCTOR = re.compile(r"(?:[:;,] (?:or )?(?:run )?)`msp-bridge doctor`[^`:;]*$")  # as the end of an error


async def diagnose(root: Path, options: Configuration, named: str | None) -> AsyncGenerator[Finding, None]:
    """One finding after another; a broken part doesn't hide the others."""
    async with contextlib.aclosing(_findings(root, options, named)) as findings:
        async for finding in findings:
            yield _as_doctor(finding)


def _as_doctor(finding: Finding) -> Finding:
    """Errors may send the user to `msp-bridge doctor`: there he is already."""
    elsewhere = finding.remedy is None or "msp-bridge doctor" in finding.remedy
    return evolve(finding, text=DOCTOR.sub("", finding.text), remedy=None if elsewhere else finding.remedy)


async def _findings(root: Path, options: Configuration, named: str | None) -> AsyncGenerator[Finding, None]:
    yield Finding(True, "project", str(root))
    try:
        survey = Survey(root, options, named, installed())
    except BridgeError as error:
        yield Finding(False, "msp-bridge", str(error))
        return
    yield Finding(True, "msp-bridge", _source(root, named, survey.configuration, options))
    diagnosis, shown = _Diagnosis(root, survey), ""
    for folder in survey.folders:
        async with contextlib.aclosing(diagnosis.of(folder)) as findings:
            async for finding in findings:
                if folder not in (shown, ""):
                    shown = folder
                    yield Finding(True, "project", str(root / folder))
                yield finding
    for name, fault in survey.broken.items():
        yield Finding(False, name, str(fault))
    if survey.configuration.adapters == () and not diagnosis.found:
        yield Finding(False, "msp-bridge", "`adapter` is empty: no tool is used", "name one, or leave `adapter` out")
    for finding in (*diagnosis.misplaced(), *diagnosis.absent()):
        yield finding


class _Diagnosis:
    def __init__(self, root: Path, survey: Survey) -> None:
        self._root, self._survey = root, survey
        self._absent: dict[str, Finding] = {}  # at the root
        self._faulty = False  # whether a tool may be somewhere that couldn't be told
        self._at: defaultdict[str, set[str]] = defaultdict(set)  # the adapters that were found, by folder

    @property
    def found(self) -> set[str]:
        """The adapters that were found anywhere."""
        return set().union(*self._at.values())

    def misplaced(self) -> Iterator[Finding]:
        """What to say of the tables that are about the root, and nothing there takes them."""
        for table in self._survey.misplaced(self._at, all_known=not self._faulty):
            if table.name in self._absent:  # else the fault of the tool itself has been told
                yield Finding(False, "msp-bridge", table.fault, table.remedy)

    def absent(self) -> Iterator[Finding]:
        """What to say of the tools that are nowhere, of those first that most files here are for."""
        chosen = self._survey.configuration.adapters is not None
        names = [name for name in self._absent if name not in self.found]
        fitting = names if chosen else self._fitting(names)
        needed = self._needed(names, fitting)
        if needed and not chosen:
            remedy = "set up what follows" if len(needed) == 1 else "set up one of those that follow"
            yield Finding(False, "tools", "none is set up here yet", remedy)
        for name in fitting:
            absent = self._absent[name]
            wrong = chosen or name in needed
            yield absent if wrong else Finding(True, absent.subject, f"not used: {absent.text}")
        if others := [name for name in names if name not in fitting]:
            yield Finding(True, "others", f"there are no files here for {', '.join(others)}")

    def _needed(self, absent: Sequence[str], fitting: Sequence[str]) -> Sequence[str]:
        """Where nothing is set up: those that fit; one that is for anything, only if no other has files here."""
        if self.found:
            return []
        return absent if fitting is absent else [name for name in fitting if self._sources(name) != ()]

    def _fitting(self, names: Sequence[str]) -> Sequence[str]:
        """Without those whose files aren't here. All, when there are none for any of them."""
        sources = {name: self._sources(name) for name in names}
        files = files_of(os.fspath(self._root), {name: patterns for name, patterns in sources.items() if patterns})
        if not any(files.values()):
            return names
        fitting = [name for name in names if files.get(name) != 0]
        return sorted(fitting, key=lambda name: (sources[name] == (), -files.get(name, 0)))

    def _sources(self, name: str) -> tuple[str, ...] | None:
        """None: the adapter doesn't say."""
        sources: tuple[str, ...] | None = getattr(load(self._survey.known[name]), "sources", None)
        return sources

    async def of(self, folder: str) -> AsyncGenerator[Finding, None]:
        """The findings on the tools that are at home in `folder`."""
        try:
            projects = list(self._survey.projects(folder))
        except BridgeError as error:
            self._faulty = True
            yield Finding(False, "msp-bridge", str(error))
            return
        idle = self._idle(folder, projects)
        for name, project in projects:
            if name in idle:
                self._at[folder].add(name)
                text = f"not used, for nothing here configures it, and {idle[name]} has its files"
                yield Finding(True, name, text)
                continue
            try:
                adapter = self._survey.detect(name, project)
                if adapter is None and name not in self._survey.broken:
                    absent = load(self._survey.known[name]).absent(project)
                    if not folder:
                        self._absent[name] = absent
                    elif self._survey.chosen_for(folder):
                        yield absent
                if adapter is None:
                    continue
                self._at[folder].add(name)
                async with contextlib.aclosing(adapter), contextlib.aclosing(adapter.diagnose()) as findings:
                    async for finding in findings:
                        yield finding
            except BridgeError as error:
                self._faulty = True
                yield Finding(False, name, str(error))

    def _idle(self, folder: str, projects: Iterable[tuple[str, Project]]) -> Mapping[str, str]:
        try:
            return self._survey.idle(folder, {name: one for name, one in projects if self._survey.detect(name, one)})
        except BridgeError:
            return {}  # that is told of the tool itself


def _source(root: Path, named: str | None, configuration: Configuration, options: Configuration) -> str:
    if configuration == Configuration():
        return "no configuration, and none needed"
    if configuration == options:
        return "configuration of the command line"
    if named is not None:
        return f"configuration of {named}"
    files = [name for name in (OWN_FILE, PYPROJECT) if (root / name).is_file()]
    return f"configuration of {files[0]}"
