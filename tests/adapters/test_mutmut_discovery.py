"""Discovery: which mutants there are, and that each replacement gives mutmut's own mutant."""

import ast
import asyncio
import dataclasses
import importlib
import os
import sys
from pathlib import Path

import libcst as cst
import pluggy
import pytest
from msp_bridge.adapters.mutmut.left_out import IN_MUTMUT
from mutmut.configuration import reset_config
from mutmut.mutation.file_mutation import mutate_file_contents
from support.adapters import remarks, unusable
from support.mutmut_trial import Trial
from support.strays import busy

from msp_bridge.adapter import Mutant, Position
from msp_bridge.python_engine import programs
from msp_bridge.source import SourceText
from msp_bridge.testing import RunningProcesses

TABLE = b'[tool.mutmut]\nsource_paths = ["pkg"]\n'
ORDINARY = """\
import asyncio, functools

def emoji(s):
    return "\N{GRINNING FACE}" + s + ("x" if s else "e\u0301y")

def nested(items):
    def inner(x, k=2):
        return x * k + 1

    return sorted(map(inner, items), key=lambda i: -i)

async def waits(n):
    await asyncio.sleep(n - 1)
    async for _ in aiter(n):
        yield n not in (1, 2)

@functools.cache
def decorated(n):
    return n + 1

class Box:
    size: int = 3

    def grow(self, by=1, *, times=2):
        self.size += by * times
        return dict(size=self.size, by=by)

    @staticmethod
    def of(a, b):
        return f"{a}" and max(a, b, 3)

    @classmethod
    def make(cls): return cls() if True else None

    @property
    def twice(self):
        return self.size * 2

def twins(a):
    return a + 1

def twins(a):
    return a - 100 if a is not None else a.split("x", 1)

def choose(x):
    match x:
        case 1:
            return "one"
        case [a, *_] if a > 2:  # a comment
            return a
        case _:
            pass
    while True:
        if x: break
        else: continue
    return (
        x  # here
        and not x
    )

def same(f, a):
    return f(a, a)
"""
SPREAD_OUT = """\
def call(a, b):
    return a.update(
        a,  # the first
        *b,
        key=max(a, b)
        + 1,
    ) or dict(a=a, b=b)

def assign(a):
    first: int = (
        a + a + a
    )
    first  +=  2
    second = third = not first
    return lambda: (second,
                    third)

def select(a):
    match a:
        case 1: return 2
        # another
        case [2, *_] if a:
            return (a if a else 3)
        case _:
            return None
"""
ODD = {
    "pyproject.toml": TABLE,
    "pkg/__init__.py": b"def top(a):\n    return a + 1\n",
    "pkg/plain.py": ORDINARY.encode(),
    "pkg/crlf.py": ORDINARY.replace("\n", "\r\n").encode(),
    "pkg/mixed.py": b"def f(a):\r\n    return (a +\n      1)\r\n\r\n"
    b"def g(a):\n    match a:\r\n        case 1:\n            pass\r\n        case 2:\r\n            return 1\r\n",
    "pkg/bom.py": b"\xef\xbb\xbf" + ORDINARY.encode(),
    "pkg/tabs.py": ORDINARY.replace("    ", "\t").encode(),
    "pkg/no_newline.py": b"def f(a): return a + 1",
    "pkg/spread_out.py": SPREAD_OUT.encode(),
    "pkg/wide.py": 'def f(s):\n    return "\N{GRINNING FACE}" + s\n'.encode(),
}
Found = tuple[Path, list[Mutant]]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """The root of the project that has these files, and its mutants."""

    async def found() -> Found:
        async with Trial.of(ODD, tmp_path_factory.mktemp("odd"), here=False) as trial:
            return trial.root, await trial.discover()

    return asyncio.run(found())


def functions(code: str) -> dict[tuple[str | None, str], str]:
    """Each function of a module as a tree without its name and decorators; of the same name, the last."""
    found = {}
    for node in ast.parse(code).body:
        owner, body = (node.name, node.body) if isinstance(node, ast.ClassDef) else (None, [node])
        for function in body:
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name, function.name, function.decorator_list = function.name, "f", []
                found[owner, name] = ast.dump(function)
    return found


def place_of(handle: str) -> tuple[str | None, str]:
    """Class and function of a mutant, from mutmut's name for it."""
    name = handle.rpartition(".")[2].rpartition("__mutmut_")[0]
    owner, _, function = name.removeprefix("xǁ").rpartition("ǁ")
    return (owner, function) if owner else (None, name.removeprefix("x_"))


def test_each_replacement_applied_to_the_file_gives_mutmuts_own_mutant(odd, monkeypatch):
    root, mutants = odd
    monkeypatch.chdir(root)
    reset_config()
    checked = 0
    for path in sorted({mutant.path for mutant in mutants}):
        source = SourceText.read(root / path)
        plain = (root / path).read_text("utf-8-sig")
        original, generated = functions(plain), functions(mutate_file_contents(path, plain).code)
        theirs = {name: tree for (_, name), tree in generated.items() if "__mutmut_" in name and name[-1].isdigit()}
        live = set()
        for mutant in (mutant for mutant in mutants if mutant.path == path):
            applied = functions(source.apply(mutant))
            changed = {place for place in original if original[place] != applied[place]}
            assert changed == {place_of(mutant.description)}
            assert applied[place_of(mutant.description)] == theirs[mutant.description.rpartition(".")[2]]
            live.add(applied[place_of(mutant.description)])
            checked += 1
        assert live == {tree for name, tree in theirs.items() if is_live(name, mutants, path)}
    assert checked == len(mutants) > 300


def is_live(name: str, mutants: list[Mutant], path: str) -> bool:
    """Not of the first of two functions of the same name: mutmut gives those names too, and never runs them."""
    last = max(
        int(m.description.rpartition("_")[2])
        for m in mutants
        if m.path == path and f"{place_of(m.description)[1]}__" in name
    )
    return int(name.rpartition("_")[2]) <= last or place_of(name) != (None, "twins")


def test_replacements_have_the_line_ends_of_their_file(odd):
    multi_line = [each.replacement for each in odd[1] if each.path == "pkg/crlf.py" and "\n" in each.replacement]
    assert multi_line
    assert all(text.count("\n") == text.count("\r\n") for text in multi_line)


def test_columns_count_utf16_units(odd):
    (swap,) = [each for each in odd[1] if (each.path, each.mutator) == ("pkg/wide.py", "operator: + to -")]
    assert (swap.location.start, swap.location.end) == (Position(2, 17), Position(2, 18))


def test_mutators_have_names_that_a_person_understands(odd):
    names = {mutant.mutator for mutant in odd[1] if mutant.path == "pkg/plain.py"}
    assert names >= {
        "operator: + to -", "operator: and to or", "operator removal: not", "number: 1 to 2", 'string: "x" to "XXxXX"',
        "lambda body: -i to None", "name: True to False", "keyword: break to return", "keyword: not in to in",
        "argument removal: key=lambda i: -i", "argument: key=lambda i: -i to None", "dict argument name: by to byXX",
        "augmented assignment: += to =", "case removal: [a, *_] if a > 2", "condition always False",
        "string method: split to rsplit",
    }  # fmt: skip
    assert not any("operator_" in name for name in names)


def test_a_location_is_what_differs_and_the_name_says_it(odd):
    mutants = [mutant for mutant in odd[1] if mutant.path == "pkg/spread_out.py"]
    source = SourceText.read(odd[0] / "pkg/spread_out.py")
    rows = {(mutant.mutator, source.at(mutant.location), mutant.replacement) for mutant in mutants}
    for mutant in mutants:
        ast.parse(source.apply(mutant))
    assert rows >= {
        ("argument: a to None", "a", "None"),
        ("argument removal: a", "a,  # the first\n        *b", "*b"),
        ("argument removal: *b", "*b,\n        key=max(a, b)\n        + 1", "key=max(a, b)\n        + 1"),
        ("argument: key=max(a, b) + 1 to None", "key=max(a, b)\n        + 1", "key=None"),
        ("argument removal: key=max(a, b) + 1", "key=max(a, b)\n        + 1,\n    )", ")"),
        ("operator: or to and", "or", "and"),
        ("dict argument name: b to bXX", "b", "bXX"),
        ("assignment: ( a + a + a ) to None", "(\n        a + a + a\n    )", "None"),
        ("augmented assignment: += to =", " += ", "="),
        ("operator: += to -=", " += ", "-="),
        ("lambda body: (second, third) to None", "(second,\n                    third)", "None"),
        (
            "case removal: 1",
            "case 1: return 2\n        # another\n        case [2, *_]",
            "# another\n        case [2, *_]",
        ),
    }
    assert {name for name, _, _ in rows} >= {"case removal: [2, *_] if a", "case removal: _"}


def test_no_two_mutants_of_a_file_share_name_and_start(odd):
    rows = [(mutant.path, mutant.mutator, mutant.location.start) for mutant in odd[1]]
    assert len(set(rows)) == len(rows) > 300


LONG_SUM = ("def f(a):\n    return " + " + ".join(["a"] * 5000) + "\n").encode()  # takes mutmut many seconds


async def test_a_file_that_takes_too_long_is_left_out_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr("msp_bridge.python_engine.listing_program.FILE_TIMEOUT_S", 61.0)
    monkeypatch.setattr("msp_bridge.python_engine.listing_program.KILOBYTE_TIMEOUT_S", -3.0)  # 1 s for the long one
    files = {"pyproject.toml": TABLE, "pkg/bad.py": LONG_SUM, "pkg/good.py": b"def f(a):\n    return a + 1\n"}
    async with Trial.of(files, tmp_path, here=False) as trial:
        assert {mutant.path for mutant in await trial.discover()} == {"pkg/good.py"}
        [told] = await unusable(trial.adapter)
    assert told.startswith("pkg/bad.py: mutmut can't mutate it: it has not found them within 1 s")


async def test_a_file_that_is_named_and_has_no_mutants_is_remarked_with_the_reason(tmp_path):
    files = {
        "setup.cfg": b"[mutmut]\nsource_paths = pkg\n",
        "pkg/dag.py": b"import nx\n\n@nx.it\ndef f(a):\n    return a + 1\n\nclass C:\n    @property\n    def g(self):\n"
        b"        return 2\n\n    @staticmethod\n    def h():\n        pass\n",
        "pkg/data.py": b"LIMIT = 3 + 4\n",
        "pkg/empty.py": b"def f():\n    pass\n",
        "other.py": b"def f(a):\n    return a + 1\n",
    }
    async with Trial.of(files, tmp_path, here=False) as trial:
        assert await trial.discover() == []
        assert await remarks(trial.adapter) == []  # for the whole project, the files are not named
        told = await remarks(trial.adapter, *(path for path in files if path.endswith(".py")))
    decorated = "mutmut leaves out functions with a decorator other than staticmethod and classmethod"
    assert told == [
        (
            "other.py has no mutants: mutmut looks for sources in pkg, without tests: `source_paths`, `only_mutate` and "
            "`do_not_mutate` in [mutmut] of setup.cfg decide that"
        ),
        f"pkg/dag.py has no mutants: {decorated} (2 of 3 functions here): {IN_MUTMUT}",
        f"pkg/data.py has no mutants: mutmut mutates functions and methods, and there are none: {IN_MUTMUT}",
        (
            "pkg/empty.py has no mutants: mutmut finds nothing to mutate in its functions, or `# pragma: no mutate` "
            "leaves it out"
        ),
    ]


async def test_a_file_that_takes_long_holds_up_no_other_request(tmp_path, monkeypatch):
    monkeypatch.setattr("msp_bridge.python_engine.listing_program.SLOW_S", 0.5)
    monkeypatch.setattr("msp_bridge.python_engine.listing_program.LOOK_S", 0.1)
    slow_file = b"".join(LONG_SUM.replace(b"def f", b"def f%d" % number) for number in range(8))
    files = {"pyproject.toml": TABLE, "pkg/bad.py": slow_file, "pkg/good.py": b"def f(a):\n    return a + 1\n"}
    async with Trial.of(files, tmp_path, here=False) as trial:
        slow = [asyncio.create_task(trial.discover("pkg/bad.py")) for _ in range(2)]
        await asyncio.sleep(0)  # theirs come first
        assert {mutant.path for mutant in await trial.discover("pkg/good.py")} == {"pkg/good.py"}
        assert [task.done() for task in slow] == [False, False]
        for task in slow:
            task.cancel()
        await asyncio.wait(slow)


async def test_a_cancelled_discovery_ends_what_mutmut_is_busy_with(tmp_path):
    files = {"pyproject.toml": TABLE, "pkg/bad.py": LONG_SUM}
    async with Trial.of(files, tmp_path, here=False) as trial:
        before = RunningProcesses()
        discovering = asyncio.create_task(trial.discover())
        await busy("discovery")
        discovering.cancel()
        await asyncio.wait([discovering])
        assert discovering.cancelled()
        assert await before.settled(0) == []


async def test_a_file_that_mutmut_cannot_mutate_is_told_each_time_and_breaks_no_other(tmp_path):
    files = {
        "pyproject.toml": TABLE,
        "pkg/good.py": b"def f(a):\n    return a + 1\n",
        "pkg/broken.py": b"def f(:\n",
        "pkg/latin.py": b"# -*- coding: latin-1 -*-\ndef f(a):\n    return a + '\xe9'\n",
        "pkg/pragma.py": b"# pragma: no mutate start\ndef f(a):\n    return a + 1\n",
        "pkg/glued.py": b"def f(a):\n    if(not a):\n        return a + 1\n    return 2\n",
        "tests/test_good.py": b"from pkg.good import f\nfrom pkg import glued, latin\n\ndef test_f():\n"
        b"    assert f(1) == 2 == glued.f(0) + 1 and latin.f('') == '\\xe9'\n",
    }
    async with Trial.of(files, tmp_path, here=False) as trial:
        mutants = await trial.discover()
        assert {mutant.path for mutant in mutants} == {"pkg/good.py", "pkg/glued.py", "pkg/latin.py"}
        for mutant in mutants:
            encoding = "latin-1" if "latin" in mutant.path else "utf-8"
            compile(SourceText.read(trial.root / mutant.path, encoding).apply(mutant), mutant.path, "exec")
        results = await trial.test(mutants)
        assert len(results) == len(mutants)
        assert {result.status.value for result in results.values()} == {"Killed", "NoCoverage"}
        for _ in range(2):
            assert {told.partition(":")[0] for told in await unusable(trial.adapter)} == {
                "pkg/broken.py",
                "pkg/pragma.py",
            }
        assert await unusable(trial.adapter, "pkg/good.py") == []


async def test_what_is_discovered_follows_scope_configuration_and_edits_and_is_the_same_in_another_server(tmp_path):
    async with Trial.of("py_calc", tmp_path, here=False) as trial:
        everything = await trial.discover()
        assert {mutant.path for mutant in everything} == {"src/calc/ops.py", "src/calc/crash.py"}  # and no tests
        assert not any("ignored" in mutant.description for mutant in everything)
        assert await trial.discover("src/") == everything
        some = await trial.discover("src/calc/crash.py", "nowhere.py")
        assert some == [mutant for mutant in everything if mutant.path == "src/calc/crash.py"]
        assert some
    async with Trial.of(
        "py_calc", tmp_path, here=False
    ) as trial:  # it has the mutants of the text before the edit from the first
        ids = [mutant.id for mutant in await trial.discover()]
        assert ids == [mutant.id for mutant in everything]
        assert len(set(ids)) == len(ids)
        trial.edit("src/calc/ops.py", "a + b", "a * b")
        assert "operator: * to /" in {mutant.mutator for mutant in await trial.discover("src/calc/ops.py")}
        trial.edit("pyproject.toml", "left_alone.py", "ops.py")
        assert {mutant.path for mutant in await trial.discover()} == {"src/calc/crash.py", "src/calc/left_alone.py"}


async def test_a_configuration_file_that_the_user_names_is_respected(tmp_path):
    files = {
        "pyproject.toml": b'[tool.mutmut]\nsource_paths = ["a"]\n',
        "setup.cfg": b"[mutmut]\nsource_paths = b\n",
        "a/m.py": b"def f(a):\n    return a + 1\n",
        "b/m.py": b"def f(a):\n    return a + 1\n",
    }
    async with Trial.of(files, tmp_path, config_file=Path("setup.cfg"), here=False) as trial:
        assert {mutant.path for mutant in await trial.discover()} == {"b/m.py"}


async def test_a_pipe_among_the_sources_keeps_nobody_waiting(tmp_path: Path) -> None:
    async with Trial.of(
        {"pyproject.toml": TABLE, "pkg/a.py": b"def f(x):\n    return x + 1\n"}, tmp_path, here=False
    ) as trial:
        pipe = trial.root / "pkg/pipe.py"
        os.mkfifo(pipe)
        try:
            assert {mutant.path for mutant in await trial.discover()} == {"pkg/a.py"}
        finally:
            pipe.unlink()


LIBRARIES = ["iniconfig/__init__", "iniconfig/_parse", "click/exceptions", "click/_compat", "pluggy/_tracing"]
ENUM = """\
import enum

class Colour(enum.Enum):
    RED = 1

    def __init__(self, number):
        self.number = number + 1

    def mixed(self):
        return self.number * 2

class Colour:
    def mixed(self): return 3

if True:
    def unseen():
        return 1
"""


def library_modules(count: int | None) -> dict[str, str]:
    site = Path(pluggy.__file__).parent.parent
    return {f"{name}.py": (site / f"{name}.py").read_text("utf-8") for name in LIBRARIES[:count]}


@pytest.fixture
def generation(tmp_path, monkeypatch):
    """The module that makes mutants in mutmut's process, as it is imported there."""
    (tmp_path / "pyproject.toml").write_bytes(TABLE + b"do_not_mutate_patterns = ['_winconsole']\n")
    (tmp_path / "pkg").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "msp_bridge_in_project.python_engine.programs", programs)
    reset_config()
    yield importlib.import_module("adapters.mutmut.programs.mutations")
    reset_config()


def test_the_functions_of_a_file_one_by_one_have_the_mutants_of_the_file(generation, every_case):
    texts = {
        **library_modules(None if every_case else 2),
        "plain.py": ORDINARY,
        "tabs.py": ORDINARY.replace("    ", "\t"),
        "enum.py": ENUM,
    }
    for path, text in texts.items():
        assert generation.pieces_of(text, line_by_line=True) is not None, path
        whole = generation.by_function(path, text)
        found = generation.Mutations().by_function(path, text)
        assert list(found.items()) == list(whole.items()), path


def known_from_another_process(generation, path, text):
    mutations = generation.Mutations()
    mutations.know(path, text, [dataclasses.astuple(change) for change in generation.Mutations().changes(path, text)])
    return mutations


def test_after_an_edit_the_mutants_are_those_of_the_new_file(generation):
    path = "pkg/m.py"
    mutations, known = generation.Mutations(), known_from_another_process(generation, path, ORDINARY)
    for old, new in (
        ("", ""),
        ("import asyncio", "# moved\nimport asyncio"),
        ("return x * k + 1", "return x * k + 17"),
        ("class Box:", "class Case:"),
        ("a - 100", "a - 100  # pragma: no mutate"),
    ):
        text = ORDINARY.replace(old, new) if old else ORDINARY
        whole = list(generation.by_function(path, text).items())
        assert list(mutations.by_function(path, text).items()) == whole
        assert list(known.by_function(path, text).items()) == whole


def test_an_edit_of_one_function_makes_the_mutants_of_that_function_alone(generation, monkeypatch):
    mutations, made = generation.Mutations(), []
    mutations.by_function("pkg/m.py", ORDINARY)
    known = known_from_another_process(generation, "pkg/m.py", ORDINARY)
    monkeypatch.setattr(generation, "by_function", lambda _path, code, _indent: made.append(code) or {})
    without_mutants = ["@functools.cache", "class Box:", "def twins(a):"]  # decorated, or of a name that comes again
    for each, more in ((mutations, []), (known, without_mutants)):
        each.by_function("pkg/m.py", ORDINARY.replace("return x * k", "return x / k"))
        assert [code.split("\n")[0] for code in made] == ["def nested(items):", *more]
        made.clear()


def test_what_mutmut_cannot_parse_is_an_error_with_the_line_of_the_file(generation):
    for text in (ORDINARY + "def f(:\n", "x = 1\n" * 50 + "def f(a):\n    return 1 +\n"):
        with pytest.raises(cst.ParserSyntaxError) as whole:
            generation.by_function("pkg/m.py", text)
        with pytest.raises(cst.ParserSyntaxError) as pieces:
            generation.Mutations().by_function("pkg/m.py", text)
        assert str(pieces.value) == str(whole.value)
