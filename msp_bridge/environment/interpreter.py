"""Where a project's Python interpreter is: editors start a server without activating anything.

The environment that the bridge runs in may be the project's, too, unless nothing but the bridge is in it.
"""

import base64
import functools
import hashlib
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msp_bridge import reading
from msp_bridge.environment.distributions import distributions, normal
from msp_bridge.errors import ConfigurationError

BRIDGE = "msp-bridge"
INSTALLERS = ("pip", "setuptools", "wheel")  # any environment may have them
REQUIRED = re.compile(r"[\w.-]+")  # the name at the beginning of a requirement
BIN, PYTHON = "bin", "python"


def named_interpreter(named: Path) -> Path:
    """The interpreter that the user `named`, or that of the environment so named. Raises ConfigurationError."""
    python = interpreter_of(named)
    if python is None:
        raise ConfigurationError(f"there is no interpreter {named}", "correct the setting `python`")
    return python


def interpreter_of(named: Path) -> Path | None:
    """The interpreter `named`, or that of the environment `named`, if there is one."""
    python = named / BIN / PYTHON if named.is_dir() else named
    try:
        return python if os.access(python, os.X_OK) else None
    except ValueError:  # no file can have that name
        return None


def find_interpreter(
    root: Path, environment: Mapping[str, str] = os.environ, *, opened: Path | None = None
) -> Path | None:
    """The first interpreter that exists, in the order of `candidates`."""
    named = candidates(root, environment, opened)
    return next((python for python in named if python.is_file() and os.access(python, os.X_OK)), None)


def candidates(root: Path, environment: Mapping[str, str], opened: Path | None = None) -> Iterator[Path]:
    """Yield the environments in the project, the activated one, those of poetry, pipenv and hatch, our own, PATH's.

    Our own comes last when there is nothing but the bridge in it, as pipx makes it: the project's tools are elsewhere.
    A project within the workspace that the user `opened` may share an environment with those around it.
    """
    for folder in (root, *(above for above in root.parents if opened and above.is_relative_to(opened))):
        for name in (".venv", "venv", "env", ".env"):
            if (folder / name / "pyvenv.cfg").is_file():
                yield folder / name / BIN / PYTHON
        yield from _pdm(folder)
    if active := environment.get("VIRTUAL_ENV"):
        yield Path(active) / BIN / PYTHON
    for conda in (root / ".conda", environment.get("CONDA_PREFIX")):
        if conda:
            yield Path(conda) / BIN / PYTHON
    yield from _poetry(root, environment)
    yield from _pipenv(root, environment)
    yield from _hatch(root, environment)
    yield from _of_any_project(environment)


def is_of_any_project(python: Path) -> bool:
    """Whether `python` is what a project gets that has none: the bridge's own, or that on PATH."""
    return python in _of_any_project(os.environ)


def _of_any_project(environment: Mapping[str, str]) -> Sequence[Path]:
    own = [Path(sys.executable)] if sys.prefix != sys.base_prefix else []
    named = (shutil.which(name, path=environment.get("PATH")) for name in ("python3", "python"))
    on_path = [Path(found) for found in named if found]
    return (*on_path, *own) if own and is_for_the_bridge_alone() else (*own, *on_path)


def _pdm(root: Path) -> Iterator[Path]:
    try:
        yield Path(reading.text(root / ".pdm-python").strip())
    except (OSError, UnicodeDecodeError):
        return


def _poetry(root: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """poetry names an environment NAME-HASH-pyX.Y; HASH is of the project's path (`EnvManager.generate_env_name`)."""
    if not (root / "poetry.lock").is_file():
        return
    digest = hashlib.sha256(os.fsencode(os.path.normcase(os.path.realpath(root)))).digest()
    short = base64.urlsafe_b64encode(digest).decode()[:8]
    home = Path(environment.get("POETRY_VIRTUALENVS_PATH") or _cache(environment) / "pypoetry" / "virtualenvs")
    yield from (found / BIN / PYTHON for found in sorted(home.glob(f"*-{short}-py*"), reverse=True))


def _pipenv(root: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """pipenv names an environment NAME-HASH; HASH is of the Pipfile's path (`Project.virtualenv_name`)."""
    pipfile = root / "Pipfile"
    if not pipfile.is_file():
        return
    short = base64.urlsafe_b64encode(hashlib.sha256(os.fsencode(pipfile)).digest()[:6]).decode()[:8]
    name = re.sub(r'[ &$`!*@"()\[\]\\\r\n\t]', "_", root.name)[:42]
    home = Path(environment.get("WORKON_HOME") or _data(environment) / "virtualenvs")
    yield home / f"{name}-{short}" / BIN / PYTHON


def _hatch(root: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """hatch keeps NAME/HASH/ENVIRONMENT; HASH is of the project's path (`VirtualEnvironment`)."""
    digest = hashlib.sha256(os.fsencode(os.path.realpath(root))).digest()
    short = base64.urlsafe_b64encode(digest).decode()[:8]
    home = Path(environment.get("HATCH_DATA_DIR") or _data(environment) / "hatch") / "env" / "virtual"
    found = sorted(
        home.glob(f"*/{short}/*/pyvenv.cfg"), key=lambda config: config.parent.name != config.parent.parent.parent.name
    )
    yield from (config.parent / BIN / PYTHON for config in found)


def _cache(environment: Mapping[str, str]) -> Path:
    return _home(environment, "XDG_CACHE_HOME", "Library/Caches", ".cache")


def _data(environment: Mapping[str, str]) -> Path:
    return _home(environment, "XDG_DATA_HOME", "Library/Application Support", ".local/share")


def _home(environment: Mapping[str, str], variable: str, mac: str, other: str) -> Path:
    if named := environment.get(variable):
        return Path(named)
    return Path.home() / (mac if sys.platform == "darwin" else other)


def is_for_the_bridge_alone() -> bool:
    """Whether nothing is installed but the bridge and what it requires, its extras included: as pipx does it."""
    sites = tuple(dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib")))
    return _holds_only(BRIDGE, sites, tuple(map(_modified, sites)))


@functools.lru_cache(maxsize=1)
def _holds_only(name: str, sites: tuple[str, ...], _: tuple[int, ...]) -> bool:
    """Called for each project of a tree; looked up again when something was installed or removed."""
    present = {found.name: found for found in distributions(sites)}
    present.pop(None, None)  # what no distribution is
    pending, due = [name, *INSTALLERS], set()
    while pending:
        if (one := normal(pending.pop())) in due:
            continue
        due.add(one)
        required = present[one].requires if one in present else ()
        wanted = (line for line in required if one == name or "extra ==" not in line)
        pending += [match[0] for line in wanted if (match := REQUIRED.match(line))]
    return present.keys() <= due


def _modified(directory: str) -> int:
    try:
        return os.stat(directory).st_mtime_ns
    except OSError:
        return 0
