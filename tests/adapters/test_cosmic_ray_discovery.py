"""Discovery: cosmic-ray's own work items, each with the exact text that it would write."""

import asyncio
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.util import read_python_source
from support.adapters import discovered, remarks, results_of, unusable
from support.cosmic_ray_trees import adapter_on, cosmic_ray, rows
from support.files import written
from support.projects import copied
from support.strays import busy

from msp_bridge.adapter import ConfigurationError, Status, ToolError
from msp_bridge.python_engine import PythonSource
from msp_bridge.source import SourceText

ODD = '''# é 🐍 odd code
import functools, os

@functools.lru_cache()

# a comment between decorators
@functools.wraps(print)
def f(a, b=-1, *args, **kw):
\tx = a+b if a<b else a -b; y = "🐍🐍" * 2 + "é" % ()
\tfor i in range(0x10):
\t\tif not i and a or b: continue
\t\telse: break
\ttry:
\t\treturn ~x ** -y // 1_000, 1.5e3, 0b11
\texcept (ValueError, OSError):
\t\tpass
\texcept Exception as e: raise

class A:
    @property
    def g(self): return True is not False, self == None, 1 != 2 >= 3, 1 in [2], 1 not in (3,)
    def h(self):
        """doc"""
        while not (self.g and None): x = lambda n: n & 1 | 2 ^ 3 << 4
        return [q for q in range(3) if q % 2 == 0], f"{1 + 1}", x @ x
def last(*, k): return k>0'''
VARIANTS = {
    "plain": ODD.encode(),
    "crlf": ODD.replace("\n", "\r\n").encode(),
    "bom": b"\xef\xbb\xbf" + ODD.encode(),
    "bom-crlf": b"\xef\xbb\xbf" + ODD.replace("\n", "\r\n").encode(),
    "mixed": ODD.replace("\n", "\r\n", 7).encode(),
    "latin-1": ("# coding: latin-1\n" + ODD.replace("🐍", "ü")).encode("latin-1"),
    "cr": b"x = 1 + 1\ry = 2\r",
    "empty": b"",
    "no-end": b"x = 1",
    "match": b"def f(x):\n    match x:\n        case 1: return x + 1\n        case _: return -x\n",
    "form-feed": b"x = 1\n\x0c\ny = 2 + 3\n",
    "recovered": b"x = 1 +\ny = (2 + 3\n",
}
CONFIGURATION = """[cosmic-ray]
module-path = "m"
timeout = 5
test-command = "python -c pass"
[[cosmic-ray.operators."core/VariableReplacer"]]
cause_variable = "b"
[[cosmic-ray.operators."core/VariableInserter"]]
cause_variable = "a"
effect_variable = "x"
"""


def project(tmp_path: Path, files: dict[str, bytes], configuration: str = CONFIGURATION) -> Path:
    root = tmp_path / "project"
    written(root / "m", files)
    (root / "cosmic-ray.toml").write_text(configuration)
    return root


def normal(data: bytes, encoding: str) -> str:
    return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


async def test_applying_a_mutant_gives_cosmic_rays_own_mutated_source(every_case: bool, tmp_path: Path) -> None:
    root = project(tmp_path, {f"{variant}.py": text for variant, text in VARIANTS.items()})
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
    sources = {mutant.path: PythonSource.read(root, mutant.path) for mutant in mutants}
    for mutant in mutants if every_case else mutants[::12]:
        item, source = mutant.handle, sources[mutant.path]
        if "core/Variable" in item.operator:
            continue  # they draw at random; the tests below look at them
        operator = get_operator(item.operator)(**item.arguments)
        expected = mutate_code(read_python_source(root / mutant.path), operator, item.occurrence)
        applied = source.text.apply(mutant)
        assert applied.replace("\r\n", "\n").replace("\r", "\n") == expected
        mutated = item.content
        assert normal(mutated, source.as_python.encoding) == expected
        assert mutated.startswith(b"\xef\xbb\xbf") == ("bom" in mutant.path)
    many = Counter(Path(mutant.path).stem for mutant in mutants)
    assert all(many[variant] > 250 for variant, text in VARIANTS.items() if b"odd code" in text), many


async def test_the_set_is_that_of_init(tmp_path: Path) -> None:
    decodable = {f"{name}.py": data for name, data in VARIANTS.items()}
    root = project(tmp_path, {**decodable, "sub/.hidden.py": b"x = 1", ".h/y.py": b"x = 1", "skip/z.py": b"x = 1"})
    plain = CONFIGURATION.partition("[[")[
        0
    ]  # cosmic-ray's own Variable* operators fail on `x = 1`, and with them `init`
    (root / "cosmic-ray.toml").write_text(plain + 'excluded-modules = ["m/sk*/**"]\n')
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        for path in root.rglob("*.py"):
            name = path.relative_to(root).as_posix()
            assert adapter.claims(name) == (name.count("/") == 1), name
        again = await discovered(adapter)
    cosmic_ray(root, "cosmic_ray.cli", "init", "cosmic-ray.toml", "session.sqlite")
    query = "select module_path, operator_name, occurrence from mutation_specs"
    found = [(mutant.path, mutant.handle.operator, mutant.handle.occurrence) for mutant in mutants]
    assert sorted(found) == sorted(rows(root, query))
    assert len({mutant.id for mutant in mutants}) == len(mutants)
    assert again == mutants


async def test_random_operators_make_the_same_mutants_after_a_restart(tmp_path: Path) -> None:
    root = project(tmp_path, {"odd.py": VARIANTS["plain"]})
    found = []
    for _ in range(2):
        async with adapter_on(root) as adapter:
            found.append([mutant for mutant in await discovered(adapter) if "Variable" in mutant.mutator])
    assert found[0] == found[1] != []


async def test_an_operator_that_fails_on_a_module_spoils_nothing_else(tmp_path: Path) -> None:
    root = project(tmp_path, {"a.py": b"try:\n    x = 1 + 1\nexcept ():\n    pass\n"})
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        [told] = await remarks(adapter)
    assert {mutant.mutator for mutant in mutants} >= {"NumberReplacer: 1 -> 2", "BinaryOperator: + -> -"}
    assert "core/ExceptionReplacer fails here" in told


async def test_mutants_that_are_no_python_are_compile_errors_filtered_ones_ignored(tmp_path: Path) -> None:
    configuration = CONFIGURATION + '[cosmic-ray.filters.operators-filter]\nexclude-operators = ["core/Number.*"]\n'
    root = project(
        tmp_path, {"a.py": b"def f(a, *args):\n    g = a + 1\n    return g * 2  # pragma: no mutate\n"}, configuration
    )
    (root / "m/b.py").write_bytes(b"def f(x):\n    return x < 1\n\nx: dict[str, int] = {**f(1)}\nprint(*x, -1)\n")
    async with adapter_on(root) as adapter:
        found = await discovered(adapter)
        mutants = [m for m in found if m.mutator.startswith("NumberReplacer") or m.location.start.line == 3]
        results = await results_of(adapter, mutants)
    assert len(results) == len(mutants) > 10
    assert {result.status for result in results} == {Status.IGNORED}
    assert {result.status_reason for result in results} == {
        "skipped by cosmic-ray's filter: # pragma: no mutate",
        "skipped by cosmic-ray's filter: Filtered operator",
    }


async def test_a_mutant_is_a_compile_error_exactly_when_its_source_does_not_compile(tmp_path: Path) -> None:
    root = project(
        tmp_path, {"a.py": b"import os\nx = [*os.sep]\nn = None is not x\ndef f(*, a=-1): return a\nx[-1] = 2\n"}
    )
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        source = SourceText.read(root / "m/a.py")
        broken = [mutant for mutant in mutants if not compiles(source.apply(mutant))]
        results = await results_of(adapter, broken)
    assert [result.mutant for result in results] == broken
    assert all(
        result.status is Status.COMPILE_ERROR and "SyntaxError" in str(result.status_reason) for result in results
    )


def compiles(source: str) -> bool:
    try:
        compile(source, "mutated", "exec")
    except SyntaxError:
        return False
    return True


async def test_the_git_filter_leaves_the_lines_that_are_new(tmp_path: Path) -> None:
    root = project(
        tmp_path, {"a.py": b"x = 1\ny = 2\n"}, CONFIGURATION + '[cosmic-ray.filters.git-filter]\nbranch = "HEAD"\n'
    )
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run(["git", *identity, *arguments], cwd=root, check=True)
    (root / "m/a.py").write_bytes(b"x = 1\ny = 3\n")
    async with adapter_on(root, edited=True) as adapter:
        mutants = await discovered(adapter)
        results = await results_of(adapter, [mutant for mutant in mutants if mutant.location.start.line == 1])
        assert {result.status for result in results} == {Status.IGNORED}
        (root / "m/a.py").write_bytes(b"x = 5\ny = 2\n")
        again = [mutant for mutant in await discovered(adapter) if mutant.location.start.line == 2]
        assert {result.status for result in await results_of(adapter, again)} == {Status.IGNORED}
        subprocess.run(["git", "update-ref", "-d", "HEAD"], cwd=root, check=True)
        with pytest.raises(ConfigurationError, match="filters fail"):
            await discovered(adapter)


async def test_readable_names_and_descriptions(tmp_path: Path) -> None:
    root = project(tmp_path, {"a.py": b"def f(a, b):\n    if a: return not a is b or -a\n"})
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
    names = {mutant.mutator for mutant in mutants}
    assert names >= {
        "ComparisonOperator: is -> is not",
        "UnaryOperator: - -> (nothing)",
        "Or -> And",
        "AddNot: a -> not a",
    }
    assert next(m for m in mutants if m.mutator == "Or -> And").description == "or -> and in f"


async def test_what_leaves_nothing_is_shown_by_the_smallest_code_around_it_that_stays(tmp_path: Path) -> None:
    text = (
        b"import functools\n\n\n@functools.cache\ndef one(a):\n    return not a\n\n\n"
        b"class C:\n    x = 1\n\n    @property\n    def two(self):\n        return 2\n"
    )
    root = project(tmp_path, {"a.py": text})
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
    assert all(mutant.replacement.strip() for mutant in mutants)
    removed = {
        (mutant.location.start.line, mutant.location.end.line): mutant.replacement.strip()
        for mutant in mutants
        if mutant.mutator.startswith("RemoveDecorator")
    }
    assert removed == {
        (2, 7): "def one(a):\n    return not a",
        (11, 15): "def two(self):\n        return 2",
    }
    (nothing,) = [mutant for mutant in mutants if "not -> (nothing)" in mutant.mutator]
    assert nothing.replacement.strip() == "a"


async def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    root = project(tmp_path, {"a.py": b"x = 1\n", "b.py": b"x = '\xff'\n"})
    async with adapter_on(root) as adapter:
        for _ in range(2):
            assert {mutant.path for mutant in await discovered(adapter)} == {"m/a.py"}
            [told] = await unusable(adapter)
            assert told.startswith("m/b.py: cosmic-ray can't mutate it: ")


LONG_SUM = ("def f(a):\n    return " + " + ".join(["a"] * 5000) + "\n").encode()  # takes cosmic-ray many seconds


async def test_a_killed_discovery_is_begun_again_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = project(tmp_path, {"bad.py": LONG_SUM})
    async with adapter_on(root) as adapter:
        discovering = asyncio.create_task(discovered(adapter))
        first = await busy("discovery")
        first.kill()
        (await busy("discovery", {first.pid})).kill()
        with pytest.raises(ToolError) as caught:
            await discovering
    died = "cosmic-ray's discovery ended (killed by SIGKILL)"
    assert f"trying once more: {died}" in caplog.text
    assert caught.value.problem.startswith(f"cosmic-ray's mutants of m/bad.py can't be listed: {died}")


async def test_an_interpreter_without_cosmic_ray_gets_the_command_that_installs_it(tmp_path: Path) -> None:
    root = copied("cr_flat", tmp_path)
    subprocess.run(["python3", "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    async with adapter_on(root, python=tmp_path / "bare/bin/python") as adapter:
        with pytest.raises(ToolError, match=r"-m pip install .cosmic-ray>=8\.7,<9"):
            await discovered(adapter)
        findings = [finding async for finding in adapter.diagnose()]
    assert findings[0].remedy == f"{tmp_path}/bare/bin/python -m pip install 'cosmic-ray>=8.7,<9'"
