"""What the user is told of tests: what to install that they need, what explains their verdicts or makes the run long."""

from pathlib import Path
from typing import Any

import pytest

from msp_bridge.python_engine import TestPlan
from msp_bridge.python_engine.remarks import of_tests
from msp_bridge.python_engine.remedies import remedy_of

PLAN = TestPlan(python=Path("/env/bin/python"), arguments=(), sources=(), limit=(1.0, 1.0), remedy="select others")


@pytest.mark.parametrize(
    ("text", "packages"),
    [
        ("pytest.main(): error: unrecognized arguments: --cov-append --cov-report=html --cov=wcwidth", "pytest-cov"),
        ("error: unrecognized arguments: --cov=x -n auto --nonsense", "pytest-cov pytest-xdist"),
        ("pytest.main(): error: unrecognized arguments: --nonsense", None),
        ("E       fixture 'benchmark' not found\n>       available fixtures: cache, capfd", "pytest-benchmark"),
        ("E       fixture 'of_this_project' not found", None),
        ("No module named 'a_b.c'", "a_b (check first that this package has the module a_b)"),
        ("ModuleNotFoundError: No module named 'yaml.reader'", "PyYAML"),
        ("Missing required plugins: pytest-mock, pytest-cov", "pytest-mock pytest-cov"),
        ("async def functions are not natively supported.\nYou need to install a suitable plugin", "pytest-asyncio"),
        ("'asyncio' not found in `markers` configuration option", "pytest-asyncio"),
        ("E   pytest.PytestUnknownMarkWarning: Unknown pytest.mark.no_cover - is this a typo?", "pytest-cov"),
        ("test_it.py:3: PytestUnknownMarkWarning: Unknown pytest.mark.asyncio - is this a typo?", None),  # no error
        ("ERROR: Error importing plugin \"timeout\": No module named 'timeout'", "pytest-timeout"),
        (
            "Error importing plugin \"a_b\": No module named 'a_b'",
            "a_b (check first that this package has the module a_b)",
        ),
        ("assert 1 == 2", None),
    ],
)
def test_the_remedy_installs_what_is_missing(text: str, packages: str | None, tmp_path: Path) -> None:
    command = None if packages is None else f"/env/bin/python -m pip install {packages}"
    assert remedy_of(text, PLAN, tmp_path) == command


@pytest.mark.parametrize("place", ["shop.py", "shop/cart.py", "src/shop/cart.py"])
def test_a_module_of_the_project_itself_is_not_sought_in_an_index(place: str, tmp_path: Path) -> None:
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).touch()
    editable = "install the project editable: /env/bin/python -m pip install -e ."
    for text in ("No module named 'shop.cart'", "No package metadata was found for shop"):
        assert remedy_of(text, PLAN, tmp_path) == editable


@pytest.mark.parametrize(("place", "named"), [("site/settings.py", "site.settings"), ("readme", "NAME.settings")])
def test_tests_without_djangos_settings_are_told_how_to_name_them(place: str, named: str, tmp_path: Path) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).touch()
    text = "ImproperlyConfigured: Requested setting X, but settings are not configured. You must either define the"
    remedy = remedy_of(text, PLAN, tmp_path)
    assert remedy is not None
    assert f'DJANGO_SETTINGS_MODULE = "{named}"' in remedy
    assert "/env/bin/python -m pip install pytest-django" in remedy


NOTHING: Any = {"unsteady": [], "always_fresh": None, "fork_unsafe": [], "starting": {}}


def test_tests_that_start_processes_are_named_when_they_make_every_survivor_slow() -> None:
    assert not [*of_tests(NOTHING | {"starting": {"test_a": 4.8}})]
    [remark] = of_tests(NOTHING | {"starting": {"test_a": 1.5, "test_b": 4.2}})
    assert str(remark).startswith(
        "2 tests with Python processes or tracing functions (such as test_b) take 6 s for each mutant"
    )
    [remark] = of_tests(NOTHING | {"starting": {"test_a": 21.0}})
    assert str(remark).startswith(
        "1 test with Python processes or tracing functions (test_a) takes 21 s for each mutant"
    )


def test_each_cause_has_a_remark() -> None:
    found = of_tests({"unsteady": ["test_a"], "always_fresh": "a reason", "fork_unsafe": ["test_b"], "starting": {}})  # type: ignore[typeddict-item]
    assert [str(remark).partition(" ")[0] for remark in found] == ["test_a", "every", "test_b"]


def test_what_pytest_is_to_remove_may_be_used_where_warnings_are_errors(tmp_path: Path) -> None:
    text = "INTERNALERROR> pytest.PytestRemovedIn10Warning: config.inicfg is deprecated, use config.getini() instead."
    assert (
        remedy_of(text, PLAN, tmp_path)
        == 'put "ignore::pytest.PytestRemovedIn10Warning" into `filterwarnings` of pytest'
    )
