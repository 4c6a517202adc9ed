"""Live code: which mutants can be put into live functions, and that those then do what a fresh import would do."""

import __future__

import gc
import itertools
import sys
import types
import weakref
from collections.abc import Iterator
from dataclasses import replace

import pytest

from msp_bridge.python_engine.programs.baseline import Baseline, FileFacts
from msp_bridge.python_engine.programs.live_code import (
    CodeChange,
    Key,
    LiveFunctions,
    NotLive,
    all_nested,
    identical,
    key,
    nested,
    pairs,
    put,
    same_shallow,
)
from msp_bridge.python_engine.programs.source_file import SourceFile

MODULE = '''
"""A module."""
import functools

LIMIT = 10

def plain(a, b=LIMIT):
    return a + b

@functools.lru_cache
def cached(a):
    return a * 2

def outer(a):
    def inner(b):
        return a - b
    return inner

class Thing:
    kind = "thing"

    def method(self):
        return [x + 1 for x in (1, 2)]

    def __private(self):
        return super().__repr__() + self.__class__.__name__

shout = lambda text: text + "!"

def generate():
    yield 1
    yield 2

def closure():
    count = 0
    def step():
        nonlocal count
        count = count + 1
        return count
    return step
'''

NUMBERS = itertools.count()


@pytest.fixture
def module() -> Iterator[types.ModuleType]:
    """MODULE, imported from a file of its own: the modules of other tests are perhaps still there."""
    name = f"live_code_under_test_{next(NUMBERS)}"
    made = types.ModuleType(name)
    made.__file__ = f"/{name}.py"
    sys.modules[name] = made
    exec(compile(MODULE, made.__file__, "exec", dont_inherit=True), made.__dict__)
    yield made
    del sys.modules[name]
    gc.freeze()  # as at the beginning of all tests


def change(old: str, new: str, text: str = MODULE, file: str = "/module.py") -> CodeChange:
    """The change that puts `new` in the place of `old`, which stands in the text once."""
    assert text.count(old) == 1
    start = text.index(old)
    return SourceFile(file, text).change(start, start + len(old), new)


def put_into(module: types.ModuleType, old: str, new: str) -> None:
    """Into the live functions."""
    file = str(module.__file__)
    put(LiveFunctions(frozenset([file])), change(old, new, file=file).segment)


@pytest.mark.parametrize(
    ("old", "new", "call", "value"),
    [
        ("a + b", "a - b", lambda m: m.plain(3, 1), 2),
        ("a * 2", "a * 3", lambda m: m.cached(2), 6),
        ("a - b", "a + b", lambda m: m.outer(3)(1), 4),
        ("x + 1", "x - 1", lambda m: m.Thing().method(), [0, 1]),
        ('text + "!"', 'text + "?"', lambda m: m.shout("a"), "a?"),
        ("yield 2", "yield 3", lambda m: list(m.generate()), [1, 3]),
        ("count + 1", "count + 2", lambda m: m.closure()(), 2),
        ("        nonlocal count\n        count = count + 1", "        count = 1", lambda m: m.closure()(), 1),
        ("[x + 1 for x in (1, 2)]", "(1, 2)", lambda m: m.Thing().method(), (1, 2)),
        ("[x + 1 for x in (1, 2)]", "{x + 1 for x in (1, 2)}", lambda m: m.Thing().method(), {2, 3}),
        ("def inner(b):", "def inner(b=1):", lambda m: m.outer(3)(), 2),
        ("self.__class__.__name__", '"x"', lambda m: m.Thing()._Thing__private()[-1], "x"),
    ],
)
def test_a_mutant_of_a_body_goes_into_the_live_function(module, old, new, call, value):
    assert change(old, new).not_live is None
    gc.freeze()  # as a conftest.py may do
    put_into(module, old, new)
    assert call(module) == value


def test_closures_that_exist_already_get_the_mutant_too(module):
    inner = module.outer(3)
    put_into(module, "a - b", "a + b")
    assert inner(1) == 4


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("LIMIT = 10", "LIMIT = 11", "runs at import"),
        ("b=LIMIT", "b=None", "runs at import"),
        ('kind = "thing"', 'kind = ""', "runs at import"),
        ("@functools.lru_cache\n", "", "runs at import"),
        ("def plain(a, b=LIMIT)", "def plain(a, c=LIMIT)", "signature"),
        ("def plain(a, b=LIMIT):", "def plain(a, b=LIMIT):\n    'Says.'", "docstring"),
        ("    yield 1\n    yield 2", "    return 1", "kind of a function"),
    ],
)
def test_what_ran_at_import_is_known_from_the_text(old, new, reason):
    assert reason in (change(old, new).not_live or "")


def test_another_comprehension_of_a_module_ran_at_import():
    assert change("[x for x in ()]", "{x for x in ()}", "FOUND = [x for x in ()]\n").not_live is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[x + 1 for x in (1, 2)]", "{x + 1 for x in (1, 2)}"),
        ("[x + 1 for x in (1, 2)]", "None"),
        ("def inner(b):", "def inner(b, *c):"),
        ("        nonlocal count\n        count = count + 1", "        count = 1"),
    ],
)
def test_what_a_function_makes_counts_from_its_first_call_on(old, new):
    """It has perhaps been looked at, and nobody holds it any more."""
    found = change(old, new)
    (outer,) = {parents[0] if parents else name for name, parents in found.changed}
    baseline = Baseline.of({"durations": {}, "failing": {}, "lines": {}}, {"tests": [], "seconds": 0.0})

    def allows(called: set[Key]) -> tuple[bool, bool]:
        facts = FileFacts(frozenset({outer}), frozenset(), frozenset(called), read=False)
        known = replace(baseline, facts={"m.py": facts})
        return known.allows_live_code("m.py", found), known.is_static("m.py", found)

    assert allows(set()) == (True, False)
    assert allows({outer}) == (False, True)


def test_a_function_that_nothing_holds_any_more_is_refused(module):
    del module.plain
    with pytest.raises(NotLive, match="no live function"):
        put_into(module, "a + b", "a - b")


def test_a_function_of_other_code_at_the_same_place_is_left_alone(module):
    other = types.FunctionType(compile(MODULE.replace("a + b", "a * b"), str(module.__file__), "exec"), {})
    namespace: dict[str, object] = {}
    exec(other.__code__, namespace)
    module.plain = namespace["plain"]
    with pytest.raises(NotLive):
        put_into(module, "a + b", "a - b")
    assert module.plain(2, 3) == 6


@pytest.mark.parametrize("changes", [{"co_name": "renamed"}, {"co_consts": (None, "instrumented")}])
def test_a_function_whose_copy_would_keep_its_code_is_refused(module, changes):
    """A decorator has made it, under another name or with other code, and nothing else is called."""
    code = module.plain.__code__
    module.copy = types.FunctionType(code.replace(**changes), module.__dict__, "copy", module.plain.__defaults__)
    with pytest.raises(NotLive, match="other code"):
        put_into(module, "a + b", "a - b")
    assert module.plain(3, 1) == module.copy(3, 1) == 4


@pytest.mark.parametrize(
    "hold", [lambda code: weakref.WeakKeyDictionary({code: "protected"}), lambda code: {code: "known"}]
)
def test_a_function_that_something_knows_by_its_code_is_refused(module, hold):
    known = hold(module.plain.__code__)
    with pytest.raises(NotLive, match="by its code"):
        put_into(module, "a + b", "a - b")
    assert module.plain.__code__ in known


def test_the_code_around_a_function_may_be_alive(module):
    """That of its module, with the exception that a module keeps of an import that has failed."""
    kept = "try:\n    raise ImportError\nexcept ImportError as error:\n    kept = error\n"
    exec(compile(MODULE + kept, str(module.__file__), "exec", dont_inherit=True), module.__dict__)
    put_into(module, "a + b", "a - b")
    inner = module.outer(3)
    put_into(module, "a - b", "a + b")
    assert (module.plain(3, 1), inner(1)) == (2, 4)


def test_only_the_statement_around_the_mutant_is_compiled():
    segment = change("a + b", "a - b").segment
    assert (segment.line, segment.old) == (7, "def plain(a, b=LIMIT):\n    return a + b\n")


def test_another_number_of_lines_moves_what_follows(module):
    found = change("return a + b", "return (a\n            + b)")
    assert (found.segment.line, found.not_live) == (1, None)
    put_into(module, "return a + b", "return (a\n            + b)")
    assert key(module.cached.__wrapped__.__code__)[1] == MODULE.count("\n", 0, MODULE.index("@functools")) + 2
    assert module.plain(1, 2) == 3


def test_a_mutant_that_is_no_python_is_a_syntax_error():
    with pytest.raises(SyntaxError):
        change("a + b", "a +")


@pytest.mark.parametrize(
    ("text", "old", "lines"),
    [
        ("def f(a):\n    if (a and\n            a > 1):\n        return 1\n", "a > 1", range(2, 4)),
        ("def f(a):\n    return g(\n        a,\n        1,\n    )\n", "1,", range(2, 6)),
        ("def f(a):\n    for x in many:\n        x = 2\n", "many", range(2, 3)),
        ("def f(a):\n    match some:\n        case 1:\n            return 2\n", "some", range(2, 3)),
        ("def f(a):\n    def g(b=max(a,\n            1)):\n        pass\n", "1", range(2, 4)),
        ("def f(a):\n    if (a and\n            a > 1): return 1\n", "a > 1", range(2, 4)),
        ("def f(a):\n    def g(\n            b=2): return a\n", "2", range(2, 4)),
        ("def f(a):\n    b = (a,\n         1); c = 2; return b\n", "2", range(3, 4)),
        ("def f(a):\n    @cached(\n        1)\n    def g():\n        pass\n", "1", range(3, 5)),
        ("f = [\n    lambda a: a,\n    lambda a: a + 1,\n]\n", "a + 1", range(1, 5)),
    ],
)
def test_the_lines_of_a_mutant_are_those_of_its_statement(text, old, lines):
    assert change(old, "3", text).lines == lines


def test_future_statements_hold_for_a_single_function():
    text = "from __future__ import annotations\n\ndef f(a: Undefined) -> None:\n    return a\n"
    segment = change("return a", "return None", text).segment
    exec(segment.compiled()[1], {})


@pytest.mark.parametrize("feature", sorted({*__future__.all_feature_names} - {"barry_as_FLUFL"}))
def test_a_function_is_compiled_as_in_its_file_whatever_the_file_takes_from_the_future(feature):
    """What is in the language by now leaves no trace in code objects, where the file asks for it."""
    text = f"from __future__ import {feature}\n\n\ndef f(a: int):\n    return a + 1\n"
    of_segment = nested(change("1", "2", text).segment.compiled()[0])  # from Python 3.14, annotations have code, too
    of_file = nested(compile(text, "m.py", "exec", dont_inherit=True))
    assert [code.co_flags for code in of_segment] == [code.co_flags for code in of_file]
    assert [code.co_code for code in of_segment] == [code.co_code for code in of_file]


def test_constants_of_equal_value_and_other_type_differ():
    assert change("return 1", "return 1.0", "def f():\n    return 1\n").changed
    assert change("return 0.0", "return -0.0", "def f():\n    return 0.0\n").changed


def test_two_compilations_of_one_set_are_the_same():
    code = compile("x = 1", "m.py", "exec")
    one, other = (code.replace(co_consts=(1, None, (frozenset(members), 2))) for members in ([0, 8], [8, 0]))
    assert [repr(each.co_consts) for each in (one, other)] == [
        "(1, None, (frozenset({0, 8}), 2))",
        "(1, None, (frozenset({8, 0}), 2))",
    ]
    assert same_shallow(one, other)
    assert not same_shallow(one, code.replace(co_consts=(1, None, (frozenset([0, 8.0]), 2))))
    assert not same_shallow(one, code.replace(co_consts=(1, None, (frozenset([0, 8]), 2.0))))


def test_a_suspended_generator_is_known(module):
    waiting = module.generate()
    next(waiting)
    facts = LiveFunctions(frozenset([module.__file__])).facts(module.__file__)
    assert key(waiting.gi_code) in facts["suspended"]
    assert key(module.plain.__code__) in facts["live"]


@pytest.mark.parametrize(
    "imports",
    [
        "import re",
        "import re, os.path as path",
        "try:\n    import re\nexcept ImportError:\n    re = None",
        "from x import re",
    ],
)
def test_a_function_is_compiled_as_in_its_file_whatever_the_file_imports(imports):
    """From Python 3.11 a call of an imported module's function is compiled in another way than that of a method."""
    text = f"{imports}\n\n\ndef f(a):\n    return re.sub('a', 'b', a).strip()\n"
    segment = change("'b'", "'c'", text).segment
    (of_segment,) = [code for code in nested(segment.compiled()[0]) if code.co_name == "f"]
    (of_file,) = [
        code for code in nested(compile(text, segment.filename, "exec", dont_inherit=True)) if code.co_name == "f"
    ]
    assert identical(of_segment, of_file)


METHODS = """class Outer(Base, metaclass=Meta):
\tlimit: int = 1
\tclass Inner:
\t\t@property
\t\tdef __private(self, limit=limit):
\t\t\tdef nested():
\t\t\t\treturn self.__value + super().limit
\t\t\treturn [nested() for _ in range(limit)], "old"
\tdef other(self):
\t\treturn self.__value
"""


def test_of_a_class_only_the_method_around_the_mutant_is_compiled_and_as_in_its_file():
    found = change('"old"', '"new"', METHODS)
    assert (found.segment.line, found.segment.classes, found.not_live) == (4, ("Outer", "Inner"), None)
    assert [name.rpartition(".")[2] for (name, _), _ in found.changed] == ["__private"]
    of_segment, of_file = (
        [code for code in all_nested(whole) if code.co_name in ("__private", "nested")]
        for whole in (found.segment.compiled()[0], compile(METHODS, found.segment.filename, "exec", dont_inherit=True))
    )
    assert len(of_file) == 2
    assert all(identical(one, other) for one, other in zip(of_segment, of_file, strict=True))


@pytest.mark.parametrize("old", ["property", "limit=limit", "int = 1", "class Inner"])
def test_what_a_class_itself_runs_is_not_live(old):
    assert change(old, f"{old[:-1]}0", METHODS).not_live == "it changes code that runs at import"


def test_an_annotation_is_a_function_of_its_own_from_python_3_14():
    found = change("limit: int", "limit: ints", METHODS)
    assert (found.not_live is None) is (sys.version_info >= (3, 14))


def replaced(module: types.ModuleType, text: str) -> list[str]:
    """The names of the code that differs, after the module's functions have got that of `text`."""
    old, new = (compile(each, str(module.__file__), "exec", dont_inherit=True) for each in (MODULE, text))
    LiveFunctions(frozenset({str(module.__file__)})).replace(old, new)
    return [pair.old.co_name for pair in pairs(old, new) if pair.changed]


def test_a_class_that_moves_is_the_same_and_says_where_it_stands(module: types.ModuleType) -> None:
    text = MODULE.replace("class Thing:", "\n\nclass Thing:").replace("x + 1", "x + 2")
    assert set(replaced(module, text)) - {"<listcomp>"} <= {"method"}
    fresh: dict[str, type] = {}
    exec(compile(text, str(module.__file__), "exec", dont_inherit=True), fresh)
    place = "__firstlineno__"  # from Python 3.13
    assert vars(module.Thing).get(place) == vars(fresh["Thing"]).get(place)
    assert module.Thing().method() == [3, 4]


def test_a_class_that_moves_and_has_another_constant_differs(module: types.ModuleType) -> None:
    line = MODULE[: MODULE.index("class Thing:")].count("\n") + 1
    module_text = MODULE.replace('kind = "thing"', f"kind = {line}")
    moved = module_text.replace("class Thing:", "\nclass Thing:").replace(f"kind = {line}", f"kind = {line + 1}")
    old, new = (compile(each, "m.py", "exec", dont_inherit=True) for each in (module_text, moved))
    assert [pair.old.co_name for pair in pairs(old, new) if pair.changed] == ["Thing"]
