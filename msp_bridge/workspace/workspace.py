"""Workspace: the tools of a tree, behind one way to discover mutants and one to test them.

Theory of operation: the way of a request
-----------------------------------------
The problem. A tree has several projects with different tools. A request names files, ranges or known mutants anywhere
in it, and its client must get every mutant exactly once: none twice, none never, whatever tools and users do
meanwhile. Files are edited while a request runs, tools fail, and newer requests come.

What is the same for every tool is done once: steps 1 and 2 here, the others by the `Request` of each part:

1. *Select.* Paths become relative to the root; what lies outside is dropped (`Selection.within`).
2. *Divide.* The request becomes one `Part` for each tool whose files it is about (`ProjectMap.parts`). The parts run
   side by side, and their results are merged as they come.
3. *Discover once.* The part's tool discovers the files in its scope. What belongs to another tool, is not selected or
   was seen before is left out. What remains is *due*: a result is owed for it.
   Where verdicts are reused (`incremental`), those of an earlier run come first, and their mutants are no longer due.
4. *Wait.* Before each result is asked for, the request waits for newer ones (`RequestScheduler`).
5. *Test.* The adapter gets the due mutants as it yielded them, with their handles. A result makes its mutant no longer
   due. One that is not due, or not any more, is dropped with a warning.
6. *Again, if a file changed.* An adapter gives no result for a mutant whose file is not as it was discovered. So for
   what is due still, the files are discovered again and steps 4 and 5 repeated, `ROUNDS` times in all. A mutant that
   no longer exists is Ignored at once. Mutants that an edit added are not part of the request.
7. *Settle.* Whatever is due in the end is Ignored with the reason, because one that is never reported would spin in the
   editor for ever.

Why step 6 is bounded: a log file in the tree, or a formatter that runs all the time, must not lead to no answer. Why it
is here: when each adapter dealt with changes, each had other rules, and each looked its mutants up once more.

Errors of one part don't keep the others from their results (`ProjectErrors`): they are raised when all parts are done.
When a part fails that isn't the whole request, its due mutants get the error as their reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from functools import cache, partial
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msp_bridge.concurrency import all_of, in_thread
from msp_bridge.environment.cache import cache_of
from msp_bridge.errors import ToolError
from msp_bridge.model import Mutant, Result
from msp_bridge.notices import Notice, Remark, UnusableFile
from msp_bridge.source import Edit
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.detection import detect_projects
from msp_bridge.workspace.projects import MountedAdapter, Part, ProjectMap
from msp_bridge.workspace.request import ProjectErrors, Request
from msp_bridge.workspace.scheduler import RequestScheduler
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.tree import Boundary

if TYPE_CHECKING:
    from msp_bridge.incremental import Incremental

log = logging.getLogger(__name__)

T = TypeVar("T")

STORE = "verdicts.sqlite"  # in the cache of the project
MANY = 200  # paths, which are looked up within some 5 ms
AT_ONCE = 1000  # paths that are looked up before a cancel, or the end of the server, is heard
PAUSE_AFTER = 500  # mutants that came without a wait: other requests, and a cancel, must get in between


class Workspace:
    """Selecting, dividing, de-duplicating, and reporting each mutant exactly once (see the module).

    Cancelling: close the generator; when that returns, its processes have ended.
    Ordering: `test` of a newer request goes before older ones (`RequestScheduler`); `discover` waits for nothing. The
    tools of one request run side by side, within one bound on the mutants that are tested at once (`JobBudget`).
    Errors: BridgeError; the error of a part becomes a ProjectFailure when a part that was named succeeded.
    Notices: each is yielded once in a request, as early as it is known.
    Resource handling: `aclose` ends the tools' warm processes.
    """

    def __init__(self, projects: ProjectMap) -> None:
        self.projects, self.root = projects, projects.root
        self._scheduler = RequestScheduler()
        self._incremental = _incremental(projects)

    @classmethod
    def open(cls, root: Path, options: Configuration | None = None, named: str | None = None) -> Workspace:
        """The workspace at `root`; `options` go over what its configuration (perhaps the file `named`) sets.

        Raises BridgeError. Starts no process.
        """
        return cls.of(detect_projects(root, options or Configuration(), named))

    @classmethod
    def of(cls, projects: ProjectMap) -> Workspace:
        """The workspace with these projects. Raises BridgeError when what was chosen can't be used."""
        projects.check()
        for error in projects.broken.values():
            log.error("%s", error)
        for error in projects.misplaced:
            log.warning("%s", error)
        return cls(projects)

    @property
    def tools(self) -> Sequence[MountedAdapter]:
        """All that are set up, the root's first."""
        return self.projects.tools

    async def discover(self, selection: Selection) -> AsyncGenerator[Mutant | Notice, None]:
        """Every selected mutant once, file by file; several tools' files in any order."""
        selection = await self.within(selection)
        errors, told = ProjectErrors(await self._looked_up(selection, self._parts)), set[Notice]()
        found = {part: self._discover(selection, part) for part in errors.parts}
        async with contextlib.aclosing(errors.merged(found)) as items:
            async for item in items:
                if _is_new(item, told):
                    yield item
        for failure in errors.collected():
            yield failure

    async def test(self, selection: Selection, *, anew: bool = False) -> AsyncGenerator[Result | Notice, None]:
        """Exactly one result for each selected mutant, as soon as it is known.

        With `anew` each is tested, also where verdicts of earlier runs are reused otherwise.
        """
        selection = await self.within(selection)
        with self._scheduler.turn() as turn:
            errors, told = ProjectErrors(await self._looked_up(selection, self._parts)), set[Notice]()
            found = {
                part: Request(
                    part,
                    due=self._known(part.tool, selection),
                    discover=partial(self._discover, selection),
                    turn=turn,
                    budget=self.projects.budget,
                    incremental=self._incremental,
                    anew=anew,
                    is_all=len(errors.parts) == 1,
                ).results()
                for part in errors.parts
            }
            async with contextlib.aclosing(errors.merged(found)) as items:
                async for item in items:
                    if _is_new(item, told):
                        with turn.paused():
                            yield item
            for failure in errors.collected():
                yield failure

    async def known(self, selection: Selection) -> AsyncGenerator[Result, None]:
        """The verdicts of earlier runs that hold still. Runs no test. Raises BridgeError."""
        selection = selection.within(self.root)
        if self._incremental is None:
            return
        for part in self._parts(selection):
            tool = part.tool
            mutants = [item for item in await all_of(self._discover(selection, part)) if not isinstance(item, Notice)]
            verdicts = await self._incremental.verdicts(tool.label, tool.folder, tool.surroundings)
            for result in await verdicts.known(mutants):
                yield result

    async def ignore(self, mutant: Mutant, reason: str) -> Edit:
        """The edit by which the tool of `mutant` ignores it; nothing is written. `reason` may be empty.

        Raises BridgeError, also when the file has changed and has no such mutant any more.
        """
        async with contextlib.aclosing(self.discover(Selection.of([mutant]))) as found:
            async for current in found:  # with the handle of the file as it is
                if isinstance(current, Notice):
                    continue
                tool = self.projects.owner(current.path)
                if tool is not None:
                    return await tool.ignore(current, reason)
        raise ToolError(f"{mutant.path} has no such mutant any more", "list its mutants again")

    def tools_for(self, selection: Selection) -> list[MountedAdapter]:
        """The tools that have a part in such a request."""
        return [part.tool for part in self._parts(selection.within(self.root))]

    async def named_files(self, selection: Selection) -> list[str]:
        """The files that were named and may have mutants: an answer mentions them even without any."""
        files = (await self.within(selection)).named_files
        named: list[str] = []
        for at in range(0, len(files), AT_ONCE):
            named += await in_thread(self._existing, files[at : at + AT_ONCE])
        return named

    async def within(self, selection: Selection) -> Selection:
        """`selection` with every path relative to the root. A large one is looked up in a thread, step by step."""
        within = methodcaller("within", self.root)
        parts = [await self._looked_up(part, within) for part in selection.split(AT_ONCE)]
        return Selection.joined(parts) if parts else selection.within(self.root)

    async def aclose(self) -> None:
        """End the tools' warm processes."""
        closing = [tool.adapter.aclose() for tool in self.tools]
        for failure in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(failure, Exception):  # one tool's fault keeps no other from ending
                log.error("a tool could not be closed", exc_info=failure)

    def _owner(self, holds: Callable[[str], bool], path: str) -> MountedAdapter | None:
        return self.projects.owner(path) if holds(path) else None

    async def _looked_up(self, selection: Selection, look: Callable[[Selection], T]) -> T:
        """Look up `selection` with `look`; in a thread if it has many paths, so that other clients don't wait."""
        return look(selection) if selection.size < MANY else await in_thread(look, selection)

    def _existing(self, files: Iterable[str]) -> list[str]:
        """The ones of `files` that some tool may have mutants in."""
        return [path for path in files if self.projects.owner(path) and os.path.isfile(os.path.join(self.root, path))]

    def _parts(self, selection: Selection) -> list[Part]:
        return [] if selection.empty else self.projects.parts(selection.scope)

    async def _discover(self, selection: Selection, part: Part) -> AsyncGenerator[Mutant | Notice, None]:
        tool = part.tool
        seen: set[Mutant] = set()
        holds = cache(Boundary(self.root).holds)  # once for each file, not for each mutant
        owner = cache(partial(self._owner, holds))
        looked_at, links = 0, False
        async with contextlib.aclosing(tool.discover(part.scope)) as mutants:
            async for mutant in mutants:
                if isinstance(mutant, Notice):
                    path = mutant.path if isinstance(mutant, UnusableFile | Remark) else ""
                    if not path or (owner(path) is tool and selection.takes_some_of(path)):
                        yield mutant
                    continue
                looked_at += 1
                if looked_at % PAUSE_AFTER == 0:
                    await asyncio.sleep(0)
                if owner(mutant.path) is tool and selection.takes(mutant) and mutant not in seen:
                    seen.add(mutant)
                    yield mutant
                elif not links and not holds(mutant.path):  # one remark, as there may be thousands
                    links = True
                    yield Remark(f"is left out: a link leads out of {self.root}; open both together", mutant.path)

    def _known(self, tool: MountedAdapter, selection: Selection) -> dict[Mutant, None]:
        """The tool's mutants that the client named one by one: what is due when they can't be discovered."""
        owner = cache(partial(self._owner, Boundary(self.root).holds))
        known = (known.mutant for known in selection.mutants or ())
        return {mutant: None for mutant in known if mutant is not None and owner(mutant.path) is tool}


def _incremental(projects: ProjectMap) -> Incremental | None:
    """The reuse of verdicts of earlier runs; None where it is off."""
    configuration, root = projects.configuration, projects.root
    if not configuration.incremental:
        return None
    from msp_bridge.incremental import Incremental  # here: an editor waits for the rest
    from msp_bridge.toolkit.kept_answers import KeptAnswers

    answers = KeptAnswers(configuration.store or cache_of(root) / STORE)
    named = None if projects.named is None else root / projects.named
    return Incremental(root, answers, named, configuration.environment)


def _is_new(item: object, told: set[Notice]) -> bool:
    """Whether the request has not said `item` yet; a notice is noted in `told`."""
    if not isinstance(item, Notice):
        return True
    if item in told:
        return False
    told.add(item)
    return True
