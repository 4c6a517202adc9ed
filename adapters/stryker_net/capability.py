"""Capability: whether the installed Stryker.NET has a mutation server of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from pathlib import Path

from msp_bridge.adapter import Project, ToolError
from msp_bridge.processes import ProcessTree

from .assumptions import HELP_NAMES, SAYS_ABSENT, SAYS_RESTORE, SERVE_HELP, SUCCESS
from .copy import PrivateCopy
from .plan import Plan
from .run import environment

log = logging.getLogger(__name__)

PATIENCE = 60.0  # s for `serve --help`
MOST = 256 * 1024  # bytes of help that are read


class Capability:
    """Asked once for each installation, whose stamp changes when the tool does; kept on disk where it has a stamp."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[str, bool] = {}

    async def serves(self, plan: Plan, copy: PrivateCopy) -> bool:
        """Whether to use the server. `copy` is one that is prepared."""
        installation = plan.installation
        if not self._project.settings.get("serve", True) or installation.has_options:
            return False
        key = f"{installation} {installation.stamp}"
        if key not in self._known:
            kept = await asyncio.to_thread(_load, self._file, key)
            self._known[key] = kept if kept is not None else await self._ask(plan, copy, key)
        return self._known[key]

    def known(self, plan: Plan) -> bool | None:
        """What was found out earlier. Reads a file only."""
        if not self._project.settings.get("serve", True) or plan.installation.has_options:
            return False
        return _load(self._file, f"{plan.installation} {plan.installation.stamp}")

    @property
    def _file(self) -> Path:
        return self._project.cache / "serve.json"

    async def _ask(self, plan: Plan, copy: PrivateCopy, key: str) -> bool:
        command = (*plan.installation.command, *SERVE_HELP)
        place = copy.path / plan.bases[0].directory
        said, code = bytearray(), -1
        try:
            async with ProcessTree.running(command, cwd=place, env=environment(copy)) as tree:
                async with asyncio.timeout(PATIENCE):
                    while len(said) < MOST and (data := await tree.read()):
                        said += data
                    code = await tree.exited() if len(said) < MOST else code
                    said += tree.errors.encode()
        except (TimeoutError, ToolError) as error:
            log.info("`%s serve --help` gave no answer (%s): the command line is used", plan.installation, error)
            return False
        serves = code == SUCCESS and HELP_NAMES in said
        log.info("Stryker.NET has %s server of its own", "a" if serves else "no")
        broken = any(words.encode() in said for words in (*SAYS_RESTORE, *SAYS_ABSENT))
        if plan.installation.stamp and not broken:
            await asyncio.to_thread(_save, self._file, key, serves)
        return serves


def _load(file: Path, key: str) -> bool | None:
    try:
        kept = json.loads(file.read_bytes())
        return bool(kept["serves"]) if kept["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.debug("nothing is kept in %s: %r", file, error)
        return None


def _save(file: Path, key: str, serves: bool) -> None:
    fresh = file.with_suffix(".new")
    with contextlib.suppress(OSError):  # then it is asked again the next time
        fresh.write_text(json.dumps({"key": key, "serves": serves}), encoding="utf-8")
        fresh.replace(file)
