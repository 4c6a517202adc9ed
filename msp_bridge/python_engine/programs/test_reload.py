"""Reload of a test file: an edit within test functions goes into the live server, and only these tests are run again.

The rule is that of `reload`, with what is different about test files. Their lines are not measured, so it is not known
which tests run a helper or a fixture of theirs: only test functions may have changed, each with no decorators but
pytest's marks, because others may have inspected it. And pytest has compiled them in its own way, for better messages
of `assert`: old and new are compiled in the same way here. Anything else raises NotLive, before anything was changed;
the host then starts new servers.
"""

from __future__ import annotations

import ast
import gc
import types
from collections.abc import Sequence
from typing import Any

import _pytest.assertion.rewrite
import pytest

from .live_code import FUNCTION, Key, LiveFunctions, NotLive, Segment, key, pairs, why_not_live
from .source_file import first_line


def reload_tests(items: Sequence[Any], segment: Segment) -> int:
    """Give the live functions of a test file the code of its new version: the tests that have changed, a bit for each.

    `segment` is the whole file. In a process whose objects are frozen (`gc.freeze`). Raises NotLive, and what compiling
    raises.
    """
    own = [(test, item) for test, item in enumerate(items) if str(item.path) == segment.filename]
    if not own or not all(isinstance(item, pytest.Function) for _, item in own):
        raise NotLive("it has tests that are no functions")
    old, new = (_compiled(text, segment.filename, own[0][1]) for text in (segment.old, segment.new))
    found = list(pairs(old, new))
    changed = [pair for pair in found if pair.changed]
    if reason := why_not_live(changed):
        raise NotLive(reason)
    edited = {pair.parents[-1] if pair.parents else key(pair.old) for pair in changed}
    tests = _tests_of(items, segment, edited)
    try:
        functions = LiveFunctions(frozenset({segment.filename}))
        for pair in found:
            if pair.old.co_flags & FUNCTION and not pair.parents and not functions.having(pair.old):
                raise NotLive("a function of it is not alive")
        functions.replace(old, new)
    finally:
        gc.collect()
        gc.freeze()
    return tests


def _tests_of(items: Sequence[Any], segment: Segment, edited: set[Key]) -> int:
    """The tests of the edited functions, also tests that another file has imported or inherited."""
    plain = {
        first_line(node)
        for node in ast.walk(ast.parse(segment.old))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and all(map(_is_mark, node.decorator_list))
    }
    tests, known = 0, set()
    for test, item in enumerate(items):
        code = getattr(getattr(item, "function", None), "__code__", None)
        if code is not None and code.co_filename == segment.filename and key(code) in edited:
            tests |= 1 << test
            known.add(key(code))
    if edited != known or not all(line in plain for _, line in edited):
        raise NotLive("it changes a function that is no test, or is decorated")
    return tests


def _is_mark(decorator: ast.expr) -> bool:
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(node).startswith("pytest.mark.")


def _compiled(text: str, filename: str, item: Any) -> types.CodeType:
    """Compile the module of a test as pytest has compiled it."""
    tree = ast.parse(text, filename=filename)
    loader = getattr(item.module, "__loader__", None)
    if isinstance(loader, _pytest.assertion.rewrite.AssertionRewritingHook):
        _pytest.assertion.rewrite.rewrite_asserts(tree, text.encode(), filename, item.config)
    code: types.CodeType = compile(tree, filename, "exec", dont_inherit=True)
    return code
