"""Which modules a process has loaded, whatever stands among them."""

import importlib.util
import sys
import types
from pathlib import Path

import pytest

from msp_bridge.python_engine.programs.import_effects import CLASSES, MODULES, imported
from msp_bridge.python_engine.programs.imports import loaded_elsewhere
from msp_bridge.python_engine.programs.loaded_modules import loaded_files, module_files


class SaysThatItIsAModule:
    """As cffi's `lib` does, which each project has loaded that uses cryptography."""

    __slots__ = ()
    __class__ = types.ModuleType  # type: ignore[assignment]


class Raises:
    """As a module that imports something else when it is asked for anything."""

    def __getattr__(self, name: str) -> object:
        raise ImportError(f"no {name} here")


class Anything:
    """As a module whose names are made when they are asked for, such as the programs of `sh`."""

    def __getattr__(self, name: str) -> object:
        return Anything()


class Columns(type):
    """Comparing its classes makes an expression, so they can't be hashed; they answer other names with an error."""

    def __eq__(cls, other: object) -> list[object]:  # type: ignore[override]
        return [cls, other]

    def __getattribute__(cls, name: str) -> object:
        raise LookupError(name)


class HasAFile:
    """As a module that has put an object in its place."""

    __file__ = "/project/pkg/settings.py"


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in {
        "pkg._lib": SaysThatItIsAModule(),
        "pkg.moves": Raises(),
        "pkg.programs": Anything(),
        "pkg.settings": HasAFile(),
        "pkg.nothing": None,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)  # type: ignore[arg-type]


@pytest.mark.usefixtures("stand_ins")
def test_what_stands_in_for_a_module_has_a_file_or_none() -> None:
    found = module_files()
    assert {name: file for name, file in found.items() if name.startswith("pkg.")} == {
        "pkg._lib": None,
        "pkg.moves": None,
        "pkg.programs": None,
        "pkg.settings": HasAFile.__file__,
        "pkg.nothing": None,
    }
    assert found[__name__] == __file__
    assert loaded_files(frozenset({HasAFile.__file__, "/project/other.py"})) == {HasAFile.__file__}
    assert {"pkg", "pkg/settings.py"} <= set(imported("/project", (), ())[MODULES])
    assert loaded_elsewhere(["pkg/programs.py", "pkg/moves.py"], "/project") is None


def test_a_class_that_can_not_be_hashed_or_asked_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    name = Path(__file__).with_suffix("").name
    monkeypatch.setitem(sys.modules, "base", types.ModuleType("base"))
    base = Columns("Base", (), {"__module__": "base"})
    own = Columns("Own", (base,), {"__module__": __name__})
    assert f"{name}.py:Own" in imported(str(Path(__file__).parent), (), ())[CLASSES]
    del own


def test_a_lazy_module_is_not_loaded_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "later.py"
    file.write_text("raise SystemExit('it was loaded')\n")
    spec = importlib.util.spec_from_file_location("later", file)
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "later", module)
    spec.loader.exec_module(module)
    assert module_files()["later"] == str(file)
