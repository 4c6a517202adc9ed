"""Every mutant of a module, exactly as cosmic-ray would make it. Runs nothing of the project.

The greeting has `version`, `versions`, `paths` and `engine`, or `error`. A question: `path`, `source`, `operators`,
`filters`, `config`; its answer: `mutants` and `warnings`, or `error`. Offsets are code points in `source`, whose line
ends are `\\n` (cosmic-ray reads with universal newlines). The source is parsed once, and its nodes are mutated, read
and restored; cosmic-ray itself parses the file anew for each mutant.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import warnings
from argparse import Namespace
from bisect import bisect_right
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any

from msp_bridge_in_project.python_engine.programs.channel import READY, Channel
from msp_bridge_in_project.python_engine.programs.narrowing import Edit, narrowed

# Which nodes an operator of cosmic-ray's own can touch, by the module that it is defined in. Any other: all nodes.
NODE_TYPES = {
    "cosmic_ray.operators.binary_operator_replacement": ("operator",),
    "cosmic_ray.operators.comparison_operator_replacement": ("comparison",),
    "cosmic_ray.operators.unary_operator_replacement": ("factor", "not_test"),
    "cosmic_ray.operators.break_continue": ("keyword",),
}
PRAGMA = re.compile(r".*#.*pragma:.*no mutate.*")  # cosmic_ray.tools.filters.pragma_no_mutate
PROVIDERS = "cosmic_ray.operator_providers"  # the group of entry points of packages that have operators
OLDEST_PYTEST = 7  # that the engine works with


class Module:
    """A parsed source, whose nodes can be mutated and are put back."""

    def __init__(self, source: str) -> None:
        import parso
        from parso.tree import BaseNode

        self.source, self.inner = source, BaseNode
        self.tree: Any = parso.parse(source)  # type: ignore[no-untyped-call]
        self.nodes: list[Any] = []
        self.spans: dict[int, tuple[int, int]] = {}  # id of a leaf: where its prefix starts, where it ends
        at, pending = 0, [self.tree]
        while pending:  # in the order of cosmic_ray.ast.ast_nodes
            node = pending.pop()
            self.nodes.append(node)
            if isinstance(node, BaseNode):
                pending.extend(reversed(node.children))
            else:
                end = at + len(node.prefix) + len(node.value)
                self.spans[id(node)] = (at, end)
                at = end
        if self.tree.get_code() != source:
            raise ValueError("parso doesn't give the source back as it was")
        self.lines = [0, *(found.end() for found in re.finditer("\n", source))]
        self.by_type: dict[str, list[Any]] = {}
        for node in self.nodes:
            self.by_type.setdefault(node.type, []).append(node)
        self._valid: dict[tuple[int, int], bool] = {}

    def offset(self, position: tuple[int, int]) -> int:
        """The offset of cosmic-ray's (1-based line, 0-based column)."""
        return self.lines[position[0] - 1] + position[1]

    def line(self, offset: int) -> int:
        """The 0-based line of `offset`."""
        return bisect_right(self.lines, offset) - 1

    def span(self, node: Any) -> tuple[int, int]:
        """Where the node's text lies, with the blanks and comments before it."""
        return self.spans[id(node.get_first_leaf())][0], self.spans[id(node.get_last_leaf())][1]

    def candidates(self, operator: Any) -> list[Any]:
        """The nodes that `operator` may have positions in, in the order of the tree."""
        types = NODE_TYPES.get(type(operator).__module__)
        if types is None:
            return self.nodes
        if len(types) == 1:
            return self.by_type.get(types[0], [])
        return [node for node in self.nodes if node.type in types]

    def mutate(self, operator: Any, node: Any, index: int) -> Edit:
        """Apply `operator` to `node`; the tree is as before. Raises what the operator raises."""
        start, end = self.span(node)
        before = list(self._state(node))
        try:
            mutated = operator.mutate(node, index)
            text = "" if mutated is None else mutated.get_code()
        finally:
            for part, children, state in before:
                if children is None:
                    part.value, part.prefix = state
                else:
                    part.children = children
                    children[:] = state
        return start, end, text

    def _state(self, node: Any) -> Iterator[tuple[Any, Any, Any]]:
        pending = [node]
        while pending:
            part = pending.pop()
            if isinstance(part, self.inner):
                yield part, part.children, list(part.children)
                pending.extend(part.children)
            else:
                yield part, None, (part.value, part.prefix)

    def visible(self, edit: Edit, node: Any) -> Edit:
        """The same edit; one that leaves nothing, of the smallest node around it that has some text left.

        Editors show what stands in the place of a mutant, and can't show nothing.
        """
        start, end, text = edit
        while not text.strip() and node is not None:
            first, last = self.span(node)
            if first <= edit[0] and edit[1] <= last:
                start, end = min(self.offset(node.start_pos), edit[0]), last
                text = self.source[start : edit[0]] + edit[2] + self.source[edit[1] : last]
            node = node.parent
        return start, end, text

    def syntax_error(self, node: Any, edit: Edit, path: str) -> str | None:
        """Why the mutated source is no Python; None when it is, or when the source itself isn't.

        Only the top-level statement is compiled, where it is valid Python by itself.
        """
        start, end, text = edit
        top = node
        while top.parent is not None and top.parent.parent is not None:
            top = top.parent
        first, last = self.span(top)
        if top.parent is None or start < first or end > last or not self._is_valid(first, last, path):
            first, last = 0, len(self.source)
        if not self._is_valid(first, last, path):
            return None
        return compile_error(self.source[first:start] + text + self.source[end:last], path)

    def _is_valid(self, first: int, last: int, path: str) -> bool:
        if (first, last) not in self._valid:
            self._valid[first, last] = compile_error(self.source[first:last], path) is None
        return self._valid[first, last]


def compile_error(source: str, path: str) -> str | None:
    """The error of `compile` for `source`."""
    try:
        compile(source, path, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        return f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
    return None


def operators(configured: dict[str, Any]) -> list[tuple[str, dict[str, Any], Any]]:
    """Name, arguments and instance of each operator that cosmic-ray would use; raises TypeError for wrong arguments."""
    from cosmic_ray import plugins

    found: list[tuple[str, dict[str, Any], Any]] = []
    for name in plugins.operator_names():
        operator = plugins.get_operator(name)
        if operator.arguments():
            found.extend((name, arguments, operator(**arguments)) for arguments in configured.get(name, ()))
        elif name in configured:
            raise TypeError(f"the operator {name} takes no arguments: remove [[cosmic-ray.operators.{name!r}]]")
        else:
            found.append((name, {}, operator()))
    return found


def mutants(module: Module, path: str, used: list[Any], complaints: list[str]) -> Iterator[dict[str, Any]]:
    """Every work item of `cosmic-ray init` for this module that changes something, in its order."""
    from cosmic_ray.ast.ast_query import ASTQuery

    for name, arguments, operator in used:
        try:  # ExceptionReplacer, on `except ():`: cosmic-ray then fails on each of its mutants in this module
            places = [(node, list(operator.mutation_positions(node))) for node in module.candidates(operator)]
        except Exception as error:
            complaints.append(f"{path}: {name} fails here: {type(error).__name__}: {error}")
            continue
        flat = [(node, index, span) for node, spans in places for index, span in enumerate(spans)]
        for occurrence, (node, index, (first, last)) in enumerate(flat):
            start, end = module.offset(first), module.offset(last)
            random.seed(json.dumps([name, arguments, occurrence, path]))  # core/Variable* draw: the same each time
            try:
                edit = narrowed(module.source, module.mutate(operator, node, index), start, end)
            except Exception as error:  # cosmic-ray fails on it, too
                complaints.append(f"{path}:{first[0]}: {name} fails here: {type(error).__name__}: {error}")
                continue
            if module.source[edit[0] : edit[1]] == edit[2]:
                continue  # it mutates nothing
            edit = module.visible(edit, node)
            yield {
                "operator": name,
                "args": arguments,
                "occurrence": occurrence,
                "first": first,
                "last": last,
                "start": edit[0],
                "end": edit[1],
                "replacement": edit[2],
                "definition": ASTQuery(node).get_definition_name(),
                "error": module.syntax_error(node, edit, path),
                "skipped": None,
            }


class FilterDatabase:
    """Stands in for the database that cosmic-ray's filters work on."""

    def __init__(self, path: str, rows: list[dict[str, Any]]) -> None:
        from cosmic_ray.work_item import MutationSpec, WorkItem

        self.rows = rows
        self.work_items = [
            WorkItem.single(
                str(number),
                MutationSpec(
                    module_path=path,
                    operator_name=row["operator"],
                    operator_args=row["args"],
                    occurrence=row["occurrence"],
                    start_pos=tuple(row["first"]),
                    end_pos=tuple(row["last"]),
                    definition_name=row["definition"],
                ),
            )
            for number, row in enumerate(rows)
        ]
        self.pending_work_items = self.work_items

    def set_result(self, job_id: str, result: Any) -> None:
        """Note that a filter skips the work item."""
        self.rows[int(job_id)]["skipped"] = result.output or "filtered"

    def set_multiple_results(self, job_ids: list[str], result: Any) -> None:
        """Note that a filter skips the work items."""
        for job_id in job_ids:
            self.set_result(job_id, result)


def apply_filters(module: Module, path: str, rows: list[dict[str, Any]], names: list[str], config: str) -> None:
    """Mark what cosmic-ray's filters skip: the pragma always, the others when they are configured."""
    lines = module.source.split("\n")
    for row in rows:
        line, column = row["last"]
        if PRAGMA.match(lines[line - 1 - (column == 0)]):
            row["skipped"] = "# pragma: no mutate"
    session, arguments = FilterDatabase(path, rows), Namespace(config=config)
    if "operators-filter" in names:
        from cosmic_ray.tools.filters.operators_filter import OperatorsFilter

        OperatorsFilter().filter(session, arguments)
    if "git-filter" in names:
        from cosmic_ray.tools.filters.git import GitFilter

        GitFilter().filter(session, arguments)
    if "line-filter" in names:
        from cosmic_ray.tools.filters.line_filter import LineFilter

        LineFilter().filter(session, arguments)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one question."""
    complaints: list[str] = []
    try:
        module = Module(request["source"])
    except Exception as error:
        return {"mutants": [], "warnings": [f"{request['path']} can't be parsed: {type(error).__name__}: {error}"]}
    try:
        used = operators(request["operators"])
        rows = list(mutants(module, request["path"], used, complaints))
    except (TypeError, AttributeError) as error:
        return {"error": f"the operators are configured wrongly: {error}"}
    try:
        apply_filters(module, request["path"], rows, request["filters"], request["config"])
    except Exception as error:
        stderr = getattr(error, "stderr", None) or b""
        return {"error": f"cosmic-ray's filters fail: {error} {stderr.decode(errors='replace')}".strip()}
    return {"mutants": rows, "warnings": complaints}


def import_roots() -> list[str]:
    """Where this interpreter imports from, the sources of editable installs included."""
    found = [str(Path(entry).absolute()) for entry in sys.path if entry]
    for name, module in list(sys.modules.items()):  # setuptools' finders map a package to its directory
        if name.startswith("__editable__"):
            found.extend(os.path.dirname(target) for target in getattr(module, "MAPPING", {}).values())
    return found


def engine_works() -> bool:
    """Whether the Python engine can run the tests of this interpreter."""
    try:
        pytest = int(version("pytest").partition(".")[0])
    except (PackageNotFoundError, ValueError):
        return False
    python = sys.implementation.name == "cpython" and sys.version_info >= (3, 10) and hasattr(os, "fork")
    return python and pytest >= OLDEST_PYTEST


def versions() -> list[str] | None:
    """Versions of all that an answer depends on; None where operators of others may depend on anything."""
    if {point.module.partition(".")[0] for point in entry_points(group=PROVIDERS)} != {"cosmic_ray"}:
        return None
    return [sys.version, *(f"{name} {version(name)}" for name in ("cosmic-ray", "parso"))]


def main(_options: dict[str, Any]) -> None:
    """Answer the bridge until it closes the channel."""
    channel = Channel.to_bridge()
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(20_000)  # parso and `ASTQuery` recurse as deep as the code is nested
    try:
        import cosmic_ray.plugins  # noqa: F401

        found = {
            "version": version("cosmic-ray"),
            "versions": versions(),
            "paths": import_roots(),
            "engine": engine_works(),
        }
    except Exception as error:
        channel.send({**READY, "error": f"{type(error).__name__}: {error}"})
        return
    channel.send({**READY, **found})
    for request in channel.messages():
        channel.send({"id": request["id"], **answer(request)})
