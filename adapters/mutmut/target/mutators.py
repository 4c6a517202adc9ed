"""What a mutant is called: mutmut's operator functions in words, with what they changed."""

from __future__ import annotations

import libcst as cst

PLAIN = {
    "operator_number": "number",
    "operator_string": "string",
    "operator_lambda": "lambda",
    "operator_dict_arguments": "dict argument name",
    "operator_match": "case removal",
}
DETAILED = {
    "operator_keywords": "keyword",
    "operator_name": "name",
    "operator_swap_op": "operator",
    "operator_symmetric_string_methods_swap": "string method",
    "operator_unsymmetrical_string_methods_swap": "string method",
}


def mutator_name(operator: str, original: cst.CSTNode, mutated: cst.CSTNode) -> str:
    """For instance "operator: + to -". An operator that we don't know yet gets the words of its function's name."""
    if operator in PLAIN:
        return PLAIN[operator]
    if operator in DETAILED:
        return f"{DETAILED[operator]}: {_essence(original)} to {_essence(mutated)}"
    if operator == "operator_remove_unary_ops" and isinstance(original, cst.UnaryOperation):
        return f"operator removal: {_code(original.operator)}"
    if operator == "operator_augmented_assignment" and isinstance(original, cst.AugAssign):
        return f"augmented assignment: {_code(original.operator)} to ="
    if (
        operator == "operator_assignment"
        and isinstance(mutated, (cst.Assign, cst.AnnAssign))
        and mutated.value is not None
    ):
        return f"assignment to {_code(mutated.value)}"
    if operator == "operator_arg_removal" and isinstance(original, cst.Call) and isinstance(mutated, cst.Call):
        return "argument removal" if len(mutated.args) < len(original.args) else "argument to None"
    if (
        operator == "operator_if_exp"
        and isinstance(mutated, cst.IfExp)
        and isinstance(mutated.test, cst.BooleanOperation)
    ):
        return f"condition always {_code(mutated.test.right)}"
    return operator.removeprefix("operator_").replace("_", " ")


def _essence(node: cst.CSTNode) -> str:
    """The part of `node` that makes the difference."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return node.func.attr.value
    return _code(getattr(node, "operator", None) or node)


def _code(node: cst.CSTNode) -> str:
    return " ".join(cst.Module([]).code_for_node(node).split())
