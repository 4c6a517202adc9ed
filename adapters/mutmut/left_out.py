"""Why a file has no mutants of mutmut's: what mutmut leaves out, and where that is decided."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msp_bridge.text import counted

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PREDICTABLE = ("staticmethod", "classmethod")
IN_MUTMUT = "mutmut decides that itself, and no option changes it"


def why_no_mutants(text: str) -> str:
    """Say what mutmut 3 leaves out of a file of which it mutates nothing.

    See `MutationVisitor._skip_node_and_children` in mutmut/mutation/file_mutation.py. Raises what `ast.parse` raises.
    """
    functions = list(_functions(ast.parse(text)))
    decorated = sum(map(_is_left_out, functions))
    if not functions:
        return f"mutmut mutates functions and methods, and there are none: {IN_MUTMUT}"
    if not decorated:
        return "mutmut finds nothing to mutate in its functions, or `# pragma: no mutate` leaves it out"
    which = f"{decorated} of {counted(len(functions), 'function')} here"
    what = f"mutmut leaves out functions with a decorator other than {' and '.join(PREDICTABLE)}"
    return f"{what} ({which}): {IN_MUTMUT}"


def why_not_listed(source_paths: Sequence[str], place: str) -> str:
    """Why mutmut doesn't look into a file at all; `place` is where its options are written."""
    options = "`source_paths`, `only_mutate` and `do_not_mutate`"
    return f"mutmut looks for sources in {', '.join(source_paths)}, without tests: {options} in {place} decide that"


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions at the top level, and methods of classes there: mutmut mutates no others by themselves."""
    for statement in tree.body:
        for one in statement.body if isinstance(statement, ast.ClassDef) else (statement,):
            if isinstance(one, FUNCTIONS):
                yield one


def _is_left_out(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = [one.id if isinstance(one, ast.Name) else "" for one in function.decorator_list]
    return bool(names) and not (len(names) == 1 and names[0] in PREDICTABLE)
