"""Remedies by cause: what to do where tests need a package that isn't installed, rather than to select other tests.

pytest names an option, a fixture, a module or a plug-in. For an option or a fixture, the package is the best known one
that has it. For a module that no table here has, it is the package of the same name, which may be another than meant:
the remedy says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msp_bridge.toolkit.install import python_install

from .plan import TestPlan

UNRECOGNIZED = re.compile(r"unrecognized arguments: (?P<arguments>[^\n]*)")
NO_FIXTURE = re.compile(r"fixture '(?P<name>\w+)' not found")
NO_MODULE = re.compile(r"No module named '(?P<name>[\w.]+)'")
NO_METADATA = re.compile(r"No package metadata was found for (?P<name>[\w.-]+)")
NO_PLUGIN = re.compile(r'Error importing plugin "(?P<name>\w+)"')  # which is named as in `-p NAME`
MISSING_PLUGINS = re.compile(r"Missing required plugins: (?P<names>[^\n]*)")
NO_ASYNC = re.compile(r"async def functions are not natively supported")
NO_MARKER = re.compile(  # an error by `--strict-markers`, or where warnings are errors
    r"(?:pytest\.PytestUnknownMarkWarning: Unknown pytest\.mark\.|'(?=\w+' not found in `markers`))(?P<name>\w+)"
)
REMOVED = re.compile(r"pytest\.PytestRemovedIn\d+Warning")  # what pytest says of itself, where warnings are errors
NO_SETTINGS = re.compile(r"settings are not configured")  # Django's
OPTIONS = {  # the beginning of an option, and the package that has it
    "--cov": "pytest-cov",
    "--no-cov": "pytest-cov",
    "--benchmark": "pytest-benchmark",
    "--timeout": "pytest-timeout",
    "--reruns": "pytest-rerunfailures",
    "--asyncio": "pytest-asyncio",
    "--doctest-plus": "pytest-doctestplus",
    "--hypothesis": "hypothesis",
    "--snapshot": "syrupy",
    "--ds": "pytest-django",
    "--html": "pytest-html",
    "--mypy": "pytest-mypy",
    "--flake8": "pytest-flake8",
    "--black": "pytest-black",
    "--isort": "pytest-isort",
    "--ruff": "pytest-ruff",
    "--mpl": "pytest-mpl",
    "--nbval": "nbval",
    "--randomly": "pytest-randomly",
    "--numprocesses": "pytest-xdist",
    "--dist": "pytest-xdist",
    "-n": "pytest-xdist",
}
FIXTURES = {
    "aiohttp_client": "pytest-aiohttp",
    "benchmark": "pytest-benchmark",
    "datadir": "pytest-datadir",
    "data_regression": "pytest-regressions",
    "db": "pytest-django",
    "faker": "Faker",
    "freezer": "pytest-freezer",
    "httpserver": "pytest-httpserver",
    "httpx_mock": "pytest-httpx",
    "mocker": "pytest-mock",
    "requests_mock": "requests-mock",
    "respx_mock": "respx",
    "snapshot": "syrupy",
    "time_machine": "time-machine",
}
MARKERS = {
    "anyio": "anyio",
    "asyncio": "pytest-asyncio",
    "benchmark": "pytest-benchmark",
    "django_db": "pytest-django",
    "no_cover": "pytest-cov",
    "timeout": "pytest-timeout",
}
DISTRIBUTIONS = {  # of modules that are called otherwise
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "google.protobuf": "protobuf",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
}
WAYS_ELSEWHERE = {
    "pythonpath": "correct the setting `pythonpath` of pytest, which leads there",
    "PYTHONPATH": "correct the environment variable PYTHONPATH, which leads there",
    "conftest.py": "correct what a conftest.py, a test or a plug-in does to sys.path, which leads there",
}
KNOWN = frozenset().union(*(table.values() for table in (OPTIONS, FIXTURES, MARKERS, DISTRIBUTIONS)))


def editable(python: Path) -> str:
    """The remedy where the environment doesn't have the project, or has another copy of it."""
    return f"install the project editable: {python} -m pip install -e ."


def elsewhere(way: str | None, python: Path) -> str | None:
    """The remedy where the tests import another copy, by a way that `imports.loaded_elsewhere` has; None: by none."""
    return editable(python) if way == "environment" else WAYS_ELSEWHERE.get(way or "")


def remedy_of(text: str, plan: TestPlan, root: Path) -> str | None:
    """The command after which `text`, what pytest says of a failure in the project at `root`, is no reason any more.

    None where no package that is missing is the cause, nor Django's settings or a warning of pytest.
    """
    if found := REMOVED.search(text):
        return f'put "ignore::{found[0]}" into `filterwarnings` of pytest'
    if NO_SETTINGS.search(text):
        return _naming_settings(plan.python, root)
    missing = list(dict.fromkeys(_missing(text)))
    if not missing:
        return None
    if own := [name for name in missing if _is_own(name, root)]:
        return editable(plan.python) if len(own) == len(missing) else None
    command = python_install(plan.python, *missing, root=root)
    module = NO_MODULE.search(text)
    guessed = [name for name in missing if name not in KNOWN and module and name == _top(module["name"])]
    return f"{command} (check first that this package has the module {guessed[0]})" if guessed else command


def _naming_settings(python: Path, root: Path) -> str:
    """The remedy where tests of a Django project run without its settings."""
    found = sorted(root.glob("*/settings.py"))
    module = f"{found[0].parent.name}.settings" if found else "NAME.settings"
    install = python_install(python, "pytest-django", root=root)
    return f'put DJANGO_SETTINGS_MODULE = "{module}" into the configuration of pytest, for pytest-django ({install})'


def _missing(text: str) -> Iterator[str]:
    """The packages, or modules of the project itself, whose lack `text` tells of."""
    if found := UNRECOGNIZED.search(text):
        for word in found["arguments"].split():
            yield from (package for option, package in OPTIONS.items() if word.startswith(option))
    if found := MISSING_PLUGINS.search(text):
        yield from (name.strip() for name in found["names"].split(","))
    if found := NO_FIXTURE.search(text):
        yield from filter(None, [FIXTURES.get(found["name"])])
    if found := NO_MARKER.search(text):
        yield from filter(None, [MARKERS.get(found["name"])])
    if NO_ASYNC.search(text):
        yield "pytest-asyncio"
    if found := NO_METADATA.search(text):
        yield found["name"]
    if (found := NO_PLUGIN.search(text)) and (package := f"pytest-{found['name']}") in KNOWN:
        yield package
    elif found := NO_MODULE.search(text):
        name = found["name"]
        yield DISTRIBUTIONS.get(name) or DISTRIBUTIONS.get(_top(name)) or _top(name)


def _top(module: str) -> str:
    return module.partition(".")[0]


def _is_own(name: str, root: Path) -> bool:
    """Whether the project has a module of this name."""
    module = name.replace("-", "_")
    places = (folder / module for folder in (root, root / "src", root / "lib"))
    return any(place.is_dir() or place.with_suffix(".py").is_file() for place in places)
