"""Ignoring: after the edit that an adapter proposes, its tool no longer lists the mutant, or gives it Ignored."""

import contextlib
from pathlib import Path

import pytest
from msp_bridge.adapters.cargo_mutants import CargoMutants
from msp_bridge.adapters.gremlins import Gremlins
from msp_bridge.adapters.stryker_net import StrykerNet
from support import go_trees
from support.adapters import discovered, results_of
from support.cosmic_ray_trees import adapter_on as cosmic_ray_on
from support.files import written
from support.mutmut_trial import Trial
from support.projects import EXAMPLES
from support.stryker_js_trees import adapter_on as stryker_js_on
from support.stryker_js_trees import copied

from msp_bridge.adapter import Mutant, Project, Status, ToolError
from msp_bridge.model import Location, Position
from msp_bridge.source import Edit, SourceText

PYTHON = '''\
def several(a, b):
    total = sum(
        [a, 2],
        start=b,
    ) + 1
    if (
        a > 8
        and b < 3
    ):
        total -= 4  # a remark
    return total

def texts(a):
    long = f"""{a + 5}
    two""" + "x"
    other = a * \\
        6
    return long, other

def header(a): return a - 7
'''
LINE, STATEMENT = "every mutant that begins in this line", "every mutant of the lines between the two comments"


def files(text: str) -> dict[str, bytes]:
    cosmic_ray = 'module-path = "pkg"\ntimeout = 5\ntest-command = "python -m pytest"\ndistributor.name = "local"\n'
    return {
        "pyproject.toml": b'[tool.mutmut]\nsource_paths = ["pkg"]\n',
        "cosmic-ray.toml": f"[cosmic-ray]\n{cosmic_ray}".encode(),
        "pkg/a.py": text.encode(),
    }


def number(mutants: list[Mutant], text: str, original: str) -> Mutant:
    """The mutant of the number `original`."""
    source = SourceText(text)
    return next(mutant for mutant in mutants if source.at(mutant.location) == original)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
async def test_mutmut_no_longer_lists_a_mutant_with_the_pragma(line_end: str, tmp_path: Path) -> None:
    text = PYTHON.replace("\n", line_end)
    expected = {"2": LINE, "1": STATEMENT, "4": LINE, "5": STATEMENT, "6": STATEMENT, "7": LINE}
    async with Trial.of(files(text), tmp_path) as trial:
        mutants = await trial.discover()
        for original, effect in expected.items():
            edit = await trial.adapter.ignore(number(mutants, text, original), "of no\nuse")
            assert edit.effect == effect
            edited = edit.apply(SourceText(text))
            assert edited.count(line_end) == edited.count("\n")
            assert "# of no use" in edited
            (trial.root / "pkg/a.py").write_bytes(edited.encode())
            source = SourceText(edited)
            left = [source.at(mutant.location) for mutant in await trial.discover()]
            assert original not in left
            assert "7" in left or original == "7"
        (trial.root / "pkg/a.py").write_bytes(text.encode())
        trial._tree = trial.tree()


async def test_cosmic_ray_ignores_a_mutant_with_the_pragma(tmp_path: Path) -> None:
    written(tmp_path / "project", files(PYTHON))
    file = tmp_path / "project" / "pkg" / "a.py"
    async with cosmic_ray_on(tmp_path / "project", edited=True) as adapter:
        mutants = await discovered(adapter)
        for original in ("1", "2", "4", "7"):
            edit = await adapter.ignore(number(mutants, PYTHON, original), "")
            assert (edit.text, edit.effect) == ("  # pragma: no mutate", "every mutant that ends in this line")
            file.write_text(edit.apply(SourceText(PYTHON)))
            mutant = number(await discovered(adapter), file.read_text(), original)
            assert [result.status for result in await results_of(adapter, [mutant])] == [Status.IGNORED]
            file.write_text(PYTHON)
        with pytest.raises(ToolError, match=r"no comment can stand at the end of pkg/a.py:14: give the expression"):
            await adapter.ignore(number(mutants, PYTHON, "5"), "")


async def test_stryker_js_ignores_a_mutant_with_the_comment(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    async with stryker_js_on(root) as adapter:
        mutants = await discovered(adapter, "lib/price.js")
        mutant = next(mutant for mutant in mutants if mutant.mutator == "ArithmeticOperator")
        edit = await adapter.ignore(mutant, "nobody pays so much")
        assert edit.text.strip() == "// Stryker disable next-line ArithmeticOperator: nobody pays so much"
        file = root / "lib" / "price.js"
        text = file.read_bytes()
        file.write_text(edit.apply(SourceText.read(file)))
        after = await discovered(adapter, "lib/price.js")
        file.write_bytes(text)
    assert len(after) == len(mutants)
    line = mutant.location.start.line + 1
    reasons = {found.handle.ignored for found in after if found.location.start.line == line}
    assert "nobody pays so much" in reasons


@go_trees.needs_gremlins
async def test_a_mutant_of_go_with_the_comment_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", go_trees.PROGRAMS)
    root = go_trees.shop(tmp_path)
    file = root / "price" / "price.go"
    first = 'package price\r\n\r\nfunc f(é, b int) (bool, string) {\r\n\treturn é > b, // why\r\n\t\t"a" + "b"\r\n}\r\n'
    async with contextlib.aclosing(Gremlins(Project(root=root, cache=tmp_path / "cache"))) as adapter:
        for mutator, line, wanted in (
            ("CONDITIONALS_BOUNDARY", 4, "//nomutant:conditionals-boundary of no use // why\r"),
            ("ARITHMETIC_BASE", 5, '"b" //nomutant:arithmetic-base of no use\r'),
        ):
            file.write_bytes(first.encode())
            mutants, _ = await go_trees.discovered(adapter, "price/price.go")
            [mutant] = [each for each in mutants if each.mutator == mutator]
            edit = await adapter.ignore(mutant, "of no\nuse")
            assert edit.effect == f"{mutator} in this line"
            edited = edit.apply(SourceText(first))
            assert edited.split("\n")[line - 1].endswith(wanted)
            file.write_bytes(edited.encode())
            after, _ = await go_trees.discovered(adapter, "price/price.go")
            assert [each.mutator for each in after if each.handle.ignored] == [mutator]
        results, _ = await go_trees.results_of(adapter, [each for each in after if each.handle.ignored])
        assert {result.status for result in results.values()} == {Status.IGNORED}
        file.write_bytes(b'package price\n\nvar text = "a" + `b\nc`\n')
        [mutant] = (await go_trees.discovered(adapter, "price/price.go"))[0]
        with pytest.raises(
            ToolError, match=r"no comment can stand at the end of price/price.go:3: give the expression"
        ):
            await adapter.ignore(mutant, "")


async def test_stryker_net_gets_a_comment_for_the_next_statement(tmp_path: Path) -> None:
    (tmp_path / "A.cs").write_text("class A {\n    int F() => 1 + 2;\n}\n")
    adapter = StrykerNet(Project(tmp_path, tmp_path / "cache"))
    mutant = Mutant("A.cs", "Arithmetic mutation", Location(Position(2, 16), Position(2, 21)), "1 - 2")
    edit = await adapter.ignore(mutant, "why not")
    assert edit.apply(SourceText.read(tmp_path / "A.cs")).split("\n")[1:3] == [
        "    // Stryker disable once all : why not",
        "    int F() => 1 + 2;",
    ]


async def test_cargo_mutants_gets_an_attribute_of_the_function() -> None:
    root = EXAMPLES / "shop-rust"
    adapter = CargoMutants(Project(root, root / "cache"))
    text = SourceText.read(root / "shop/src/lib.rs")
    start = text.text.index("price * (count - 1)")
    edit = await adapter.ignore(Mutant("shop/src/lib.rs", "m", text.location(start, start + 1), "0"), "so")
    assert edit == Edit(
        "shop/src/lib.rs",
        text.location(text.text.index("pub fn total"), text.text.index("pub fn total")),
        "#[cfg_attr(test, mutants::skip)] // so\n",
        "every mutant of this function",
    )
    with pytest.raises(ToolError, match="is in no function"):
        await adapter.ignore(Mutant("shop/src/lib.rs", "m", text.location(0, 1), ""), "so")
