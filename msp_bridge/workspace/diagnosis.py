"""Diagnosis: what `msp-bridge doctor` finds: the configuration first, then each tool of each folder."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

from msp_bridge.adapter import Finding
from msp_bridge.errors import BridgeError
from msp_bridge.workspace.adapters import installed, load
from msp_bridge.workspace.configuration import OWN_FILE, PYPROJECT, Configuration
from msp_bridge.workspace.survey import Survey


async def diagnose(root: Path, options: Configuration, named: str | None) -> AsyncGenerator[Finding, None]:
    """One finding after another; a broken part doesn't hide the others."""
    yield Finding(True, "project", str(root))
    try:
        survey = Survey(root, options, named, installed())
    except BridgeError as error:
        yield Finding(False, "msp-bridge", str(error))
        return
    yield Finding(True, "msp-bridge", _source(root, named, survey.configuration, options))
    diagnosis, shown = _Diagnosis(survey), ""
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
    needed = survey.configuration.adapters is not None or not diagnosis.found  # else what isn't here isn't wrong
    for finding in diagnosis.absent:
        yield finding if needed else Finding(True, finding.subject, f"not used: {finding.text}")


class _Diagnosis:
    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._absent: dict[str, Finding] = {}  # at the root
        self.found: set[str] = set()

    @property
    def absent(self) -> list[Finding]:
        """What to say of the tools that are nowhere."""
        return [finding for name, finding in self._absent.items() if name not in self.found]

    async def of(self, folder: str) -> AsyncGenerator[Finding, None]:
        """The findings on the tools that are at home in `folder`."""
        try:
            projects = list(self._survey.projects(folder))
        except BridgeError as error:
            yield Finding(False, "msp-bridge", str(error))
            return
        for name, project in projects:
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
                self.found.add(name)
                async with contextlib.aclosing(adapter), contextlib.aclosing(adapter.diagnose()) as findings:
                    async for finding in findings:
                        yield finding
            except BridgeError as error:
                yield Finding(False, name, str(error))


def _source(root: Path, named: str | None, configuration: Configuration, options: Configuration) -> str:
    if configuration == Configuration():
        return "no configuration, and none needed"
    if configuration == options:
        return "configuration of the command line"
    if named is not None:
        return f"configuration of {named}"
    files = [name for name in (OWN_FILE, PYPROJECT) if (root / name).is_file()]
    return f"configuration of {files[0]}"
