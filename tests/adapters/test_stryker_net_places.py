"""Places: from the tool's lines and columns to the protocol's. Against the scripted dotnet."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msp_bridge.adapters.stryker_net.report import BREAK
from support.adapters import discovered
from support.net_trees import Scripted, adapter_on, results_of
from support.projects import copied

from msp_bridge.adapter import Position, Status
from msp_bridge.source import SourceText

BOM = b"\xef\xbb\xbf"
SOURCES = {
    "bom": BOM + b"// one\nclass C { int f(int a, int b) => a + b; int g(int p, int q) => p + q; }\n",
    "crlf": b"// one\r\n\r\nclass C {\r\n int f(int a, int b) => a + b;\r\n int g(int p, int q) => p + q; }\r\n",
    "astral": "// \U0001f600\U0001f600 é\nclass C { /* \U0001f600 */ int f(int a, int b) => a + b;\n"
    "// \U0001f600\n int g(int p, int q) => p + q; /* \U0001f600 */ }\n".encode(),
    "tabs": b"\t// one\n\tclass C {\t\tint f(int a, int b)\t=>\ta + b;\n\t\tint g(int p, int q) => p + q; }\n",
    "all": BOM
    + "// \U0001f600\r\n\tclass C { /*\U0001f600*/ int f(int a, int b) => a + b;\r\n"
    "/*\U0001f600*/\tint g(int p, int q) => p + q; }".encode(),
    "line ends of C# that are none of the protocol": "// a\u2028// b\r// c\u0085class C { int f(int a, int b) => a + b;\n"
    "int g(int p, int q) => p + q; }".encode(),
}
TESTS = "[Fact] public void F() { } // kills: a + b\n[Fact] public void G() { } // covers: p + q\n"


async def test_a_mutant_is_exact_wherever_it_stands_and_whatever_its_file_is_called(
    dotnet: Scripted, tmp_path: Path
) -> None:
    root = copied("net_calc", tmp_path)
    paths = [f"src/Calc/Odd[{number}]{{2}}.cs" for number in range(len(SOURCES))]
    for path, text in zip(paths, SOURCES.values(), strict=True):
        (root / path).write_bytes(text)
    (root / "tests/Calc.Tests/OddTests.cs").write_text(TESTS)
    async with adapter_on(root) as adapter:
        found = {path: await discovered(adapter, path) for path in paths}
        results = await results_of(adapter, [mutant for mutants in found.values() for mutant in mutants])
    for path, name in zip(paths, SOURCES, strict=True):
        source = SourceText.read(root / path)
        first, second = found[path]
        assert (source.at(first.location), source.at(second.location)) == ("a + b", "p + q"), name
        assert source.apply(first) == source.text.replace("a + b", "a - b"), name
        statuses = {result.mutant: result.status for result in results if result.mutant.path == path}
        assert statuses == {first: Status.KILLED, second: Status.SURVIVED}, name


@given(st.text(alphabet="ab\t \r\n\u2028\u0085\u00e9\U0001f600", max_size=40), st.data())
def test_a_place_of_the_tool_is_the_same_place_in_the_protocol(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    if text[offset - 1 : offset + 1] == "\r\n":
        return  # no token of C# begins between the two
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u0085", "\n")
    line = before[before.rfind("\n") + 1 :]
    position = Position(before.count("\n") + 1, len(line.encode("utf-16-le")) // 2 + 1)
    assert SourceText(text, BREAK).offset(position) == offset


@pytest.mark.parametrize("position", [Position(3, 1), Position(1, 9), Position(0, 1), Position(2, 2)])
def test_a_place_that_the_text_does_not_have_is_refused(position: Position) -> None:
    with pytest.raises(ValueError, match="no"):
        SourceText("abc\n\U0001f600", BREAK).offset(position)
