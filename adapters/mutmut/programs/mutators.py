"""Names and places of mutants: mutmut's operator functions in words, with the part of the code that differs.

The mutants of a line must differ in name or place: an editor's list shows nothing else. mutmut itself replaces whole
calls, assignments and match statements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import libcst as cst

SHOWN_CHARS = 40  # characters of code in a name


@dataclass(frozen=True)
class NodeDifference:
    """The difference that a mutator makes between two nodes: its name, and the part of the original that differs."""

    mutator: str
    first: cst.CSTNode
    last: cst.CSTNode


def difference(operator: str, original: cst.CSTNode, mutated: cst.CSTNode) -> NodeDifference:
    """For instance "operator: + to -". An operator that we don't know yet gets the words of its function's name."""
    found = DIFFERENCES[operator](original, mutated) if operator in DIFFERENCES else None
    return found or NodeDifference(operator.removeprefix("operator_").replace("_", " "), original, original)


Find = Callable[[Any, Any], NodeDifference | None]


def _whole(kind: str) -> Find:
    return lambda original, mutated: _changed(kind, original, mutated)


def _attribute(kind: str, *names: str) -> Find:
    """For an operator that changes an attribute (of an attribute) of its node."""

    def find(original: Any, mutated: Any) -> NodeDifference | None:
        for name in names:
            original, mutated = getattr(original, name, None), getattr(mutated, name, None)
        return None if original is None or mutated is None else _changed(kind, original, mutated)

    return find


def _dict_argument(original: cst.Call, mutated: cst.Call) -> NodeDifference | None:
    for old, new in zip(original.args, mutated.args, strict=True):
        if old is not new and old.keyword is not None and new.keyword is not None:
            return _changed("dict argument name", old.keyword, new.keyword)
    return None


def _argument(original: cst.Call, mutated: cst.Call) -> NodeDifference | None:
    if len(mutated.args) < len(original.args):
        at, last = _removed(original.args, mutated.args), original.args[-1]
        argument = original.args[at]
        # with what follows it, so that some text stays
        return NodeDifference(
            f"argument removal: {_code(argument)}", argument, original if argument is last else original.args[at + 1]
        )
    for old, new in zip(original.args, mutated.args, strict=True):
        if old is not new:
            return NodeDifference(f"argument: {_code(old)} to {_code(new.value)}", old, old)
    return None


def _case(original: cst.Match, mutated: cst.Match) -> NodeDifference | None:
    at = _removed(original.cases, mutated.cases)
    case = original.cases[at]
    name = f"case removal: {_code(case.pattern)}"
    if case.guard is not None:
        name += f" if {_code(case.guard)}"
    if at + 1 < len(original.cases):
        return NodeDifference(name, case, original.cases[at + 1].pattern)
    return NodeDifference(name, original.cases[at - 1], case)


def _unary(original: cst.UnaryOperation, _: cst.CSTNode) -> NodeDifference | None:
    return NodeDifference(f"operator removal: {_code(original.operator)}", original, original)


def _augmented(original: cst.AugAssign, _: cst.CSTNode) -> NodeDifference | None:
    operator = original.operator
    return NodeDifference(f"augmented assignment: {_code(operator)} to =", operator, operator)


def _condition(original: cst.IfExp, mutated: cst.IfExp) -> NodeDifference | None:
    if not isinstance(mutated.test, cst.BooleanOperation):
        return None
    return NodeDifference(f"condition always {_code(mutated.test.right)}", original.test, original.test)


def _changed(kind: str, old: cst.CSTNode, new: cst.CSTNode) -> NodeDifference:
    return NodeDifference(f"{kind}: {_code(old)} to {_code(new)}", old, old)


def _removed(old: Any, new: Any) -> int:
    """The index of the element that `new` lacks."""
    return next((at for at, element in enumerate(new) if element is not old[at]), len(new))


def _code(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Arg):
        node = node.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace(""))
    text = " ".join(cst.Module([]).code_for_node(node).split())
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"


DIFFERENCES: dict[str, Find] = {
    "operator_number": _whole("number"),
    "operator_string": _whole("string"),
    "operator_name": _whole("name"),
    "operator_keywords": _whole("keyword"),
    "operator_lambda": _attribute("lambda body", "body"),
    "operator_assignment": _attribute("assignment", "value"),
    "operator_swap_op": _attribute("operator", "operator"),
    "operator_symmetric_string_methods_swap": _attribute("string method", "func", "attr"),
    "operator_unsymmetrical_string_methods_swap": _attribute("string method", "func", "attr"),
    "operator_dict_arguments": _dict_argument,
    "operator_arg_removal": _argument,
    "operator_match": _case,
    "operator_remove_unary_ops": _unary,
    "operator_augmented_assignment": _augmented,
    "operator_if_exp": _condition,
}
