"""Random edits: after each, a run that reuses verdicts says the same as one that tests everything.

More of them, and on another project: MSP_BRIDGE_EDITS=200 MSP_BRIDGE_EDITED=/path/to/a/library, whose copy is edited;
with cosmic-ray if it is configured there. MSP_BRIDGE_SEED repeats a run that failed, by the seed in its message.
"""

import ast
import contextlib
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from support.files import written

from msp_bridge.errors import BridgeError
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.toolkit import walk
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.workspace import Workspace

EDITS = int(os.environ.get("MSP_BRIDGE_EDITS", "5"))
EDITED = os.environ.get("MSP_BRIDGE_EDITED")
SEED = int(os.environ.get("MSP_BRIDGE_SEED") or random.SystemRandom().randrange(1 << 32))
COSMIC_RAY = "cosmic-ray.toml"
SHOP = {
    COSMIC_RAY: """[cosmic-ray]
module-path = "shop"
timeout = 10.0
excluded-modules = []
test-command = "python -m pytest -x"

[cosmic-ray.distributor]
name = "local"
""",
    "pyproject.toml": '[tool.mutmut]\nsource_paths = ["shop"]\n\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n',
    "shop/__init__.py": "",
    "shop/cart.py": "from shop.rates import rate\n\n\ndef total(prices, kind):\n    return sum(prices) + rate(kind)\n",
    "shop/rates.py": (
        "from pathlib import Path\n\nROOT = Path(__file__).parents[1]\n\n\ndef rate(kind):\n"
        '    for line in (ROOT / "rates.csv").read_text().splitlines():\n'
        '        name, value = line.split(",")\n'
        "        if name == kind:\n            return int(value)\n    return 1\n"
    ),
    "rates.csv": "fast,7\nslow,2\n",
    "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef prices():\n    return [3, 4]\n",
    "tests/test_cart.py": (
        "from shop.cart import total\n\n\ndef test_total(prices):\n"
        '    assert total(prices, "fast") == 14\n\n\ndef test_unknown(prices):\n    assert total(prices, "other") > 7\n'
    ),
}
Verdicts = dict[Mutant, Status] | str


class Edits:
    """Random changes of a tree, of every kind that a verdict could depend on, or not."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self._root, self._chance = root, chance
        self._before: list[tuple[Path, bytes | None]] = []
        self._kinds: list[Callable[[], str]] = [
            *(self._number,) * 8,
            *(self._line,) * 8,
            *(self._without_statement,) * 6,
            self._module_level,
            self._data,
            self._new_file,
            self._delete,
            self._touch,
            *(self.undo,) * 5,
        ]

    def edit(self) -> str:
        """Change something; returns what."""
        return self._chance.choice(self._kinds)()

    def _files(self, *endings: str) -> list[Path]:
        found = (Path(directory, name) for directory, _, names in walk(self._root) for name in names)
        return sorted(file for file in found if not endings or file.name.endswith(endings))

    def _write(self, file: Path, content: bytes | None) -> None:
        self._before.append((file, file.read_bytes() if file.exists() else None))
        self._put(file, content)

    def _put(self, file: Path, content: bytes | None) -> None:
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)

    def _code(self) -> tuple[Path, list[str], list[ast.FunctionDef]]:
        """A file with code, its lines, and its functions."""
        file = self._chance.choice(self._files(".py"))
        lines = file.read_text("utf-8").splitlines(keepends=True)
        nodes = ast.walk(ast.parse("".join(lines)))
        return file, lines, [node for node in nodes if isinstance(node, ast.FunctionDef)]

    def _number(self) -> str:
        """A number in a function, of the code or of the tests, is another one."""
        file, lines, functions = self._code()
        numbers = [
            node
            for function in functions
            for node in ast.walk(function)
            if isinstance(node, ast.Constant) and type(node.value) is int and lines[node.lineno - 1].isascii()
        ]
        if not numbers:
            return self._data()
        node, value = self._chance.choice(numbers), str(self._chance.randrange(9))
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = line[: node.col_offset] + value + line[node.end_col_offset :]
        self._write(file, "".join(lines).encode())
        return f"a number in {file.name}"

    def _line(self) -> str:
        """A function is longer by a line."""
        file, lines, functions = self._code()
        bodies = [function.body[0] for function in functions if function.body[0].lineno > function.lineno]
        if not bodies:
            return self._module_level()
        first = self._chance.choice(bodies)
        lines.insert(first.lineno - 1, f"{' ' * first.col_offset}added = {self._chance.randrange(9)}\n")
        self._write(file, "".join(lines).encode())
        return f"a line in a function of {file.name}"

    def _without_statement(self) -> str:
        """A function does one thing less: other code may run then, in other tests."""
        file, lines, functions = self._code()
        statements = [
            node
            for function in functions
            for node in ast.walk(function)
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr))
            and node.lineno == node.end_lineno
            and lines[node.lineno - 1].isascii()
            and lines[node.lineno - 1].strip() == lines[node.lineno - 1][node.col_offset : node.end_col_offset]
        ]
        if not statements:
            return self._module_level()
        node = self._chance.choice(statements)
        lines[node.lineno - 1] = f"{' ' * node.col_offset}pass\n"
        self._write(file, "".join(lines).encode())
        return f"a statement less in {file.name}"

    def _module_level(self) -> str:
        file = self._chance.choice(self._files(".py"))
        self._write(file, file.read_bytes() + f"\nADDED = {self._chance.randrange(9)}\n".encode())
        return f"the module level of {file.name}"

    def _data(self) -> str:
        file = self._chance.choice([file for file in self._files() if file.suffix != ".py"] or self._files())
        self._write(file, file.read_bytes() + b"\n")
        return f"the data in {file.name}"

    def _new_file(self) -> str:
        directory = self._chance.choice(sorted({file.parent for file in self._files(".py")}))
        name = self._chance.choice(("conftest.py", "test_new.py", "json.py", "new.txt"))
        if (directory / name).exists():
            return self._touch()
        content = "def test_new():\n    assert True\n" if name.startswith("test_") else ""
        self._write(directory / name, content.encode())
        return f"a new {directory.name}/{name}"

    def _delete(self) -> str:
        file = self._chance.choice(self._files())
        self._write(file, None)
        return f"no {file.name}"

    def _touch(self) -> str:
        file = self._chance.choice(self._files())
        os.utime(file)
        return f"only the time of {file.name}"

    def undo(self) -> str:
        """Take back the last change."""
        if not self._before:
            return self._touch()
        file, content = self._before.pop()
        if content is None and not file.exists():
            return self._touch()
        self._put(file, content)
        return f"{file.name} as it was"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    place = tmp_path / "project"
    if EDITED is not None:
        shutil.copytree(EDITED, place, symlinks=True)
    else:
        written(place, SHOP)
    return place


async def verdicts(workspace: Workspace, *, anew: bool) -> tuple[Verdicts, int, int]:
    """The status of each mutant, or the error; how many are reused, and how many could be the next time.

    A time-out says as much as a kill.
    """
    found, reused, reusable = dict[Mutant, Status](), 0, 0
    try:
        async for result in workspace.test(Selection(), anew=anew):
            if not isinstance(result, Result):  # a notice
                continue
            found[result.mutant] = Status.KILLED if result.status is Status.TIMEOUT else result.status
            reused += result.reused
            reusable += result.reusable
    except BridgeError as error:
        return type(error).__name__, 0, 0
    return found, reused, reusable


@pytest.mark.parametrize("tool", ["mutmut", "cosmic-ray"])
async def test_what_is_reused_is_what_a_test_would_say(
    tool: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if tool == "cosmic-ray" and not (root / COSMIC_RAY).exists():
        pytest.skip(f"the library has no {COSMIC_RAY}")
    plain = Configuration(adapters=(tool,), python=Path(sys.executable), jobs=2)
    both = evolve(plain, incremental=True, store=tmp_path / "verdicts.sqlite")
    edits, total = Edits(root, random.Random(SEED)), 0
    expected: Verdicts = {}
    first = reusable = 0
    async with contextlib.AsyncExitStack() as stack:
        workspaces = []
        for configuration, cache in ((both, "cache"), (plain, "reference")):
            monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / cache))
            workspaces.append(await stack.enter_async_context(contextlib.aclosing(Workspace.open(root, configuration))))
        incremental, reference = workspaces
        for number in range(EDITS + 1):
            broken = isinstance(expected, str) or (number > 1 and not reusable)  # a test fails
            what = "nothing" if number < 2 else edits.undo() if broken else edits.edit()
            expected, _, _ = await verdicts(reference, anew=True)
            found, reused, reusable = await verdicts(incremental, anew=False)
            with capsys.disabled():
                if "MSP_BRIDGE_EDITS" in os.environ:
                    shown = "no verdicts" if isinstance(found, str) else f"{reused} of {len(found)} reused"
                    sys.stderr.write(f"{number}: {what}: {shown}\n")
            assert found == expected, f"seed {SEED}, edit {number}: {what}"
            total += reused
            if number == 0:
                first = reusable  # none when a test fails by chance, as one may on a busy machine
    assert total > 0 or first == 0, f"seed {SEED}: nothing was ever reused"
