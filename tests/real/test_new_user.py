"""A new user's path: from `pip install` in a bare virtual environment to a job of CI. docker/test_image.py has the image."""

import email
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from support import chromium
from support.new_user import ROOT, example, walk

SOURCES = [
    "msp_bridge",
    "adapters",
    "docs",
    "pyproject.toml",
    "MANIFEST.in",
    "setup.py",
    "forge_links.py",
    "README.md",
    "LICENSE",
]
UV = f"{sys.prefix}/bin/uv"  # it installs what pip does, faster


def built(scratch: Path) -> Path:
    """The wheel that is built from the source distribution, which is built from a copy of this tree, as for a release."""
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, scratch / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, scratch)
    done = subprocess.run([UV, "build", "--quiet", "--out-dir", "dist"], cwd=scratch, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [wheel], [_] = (scratch / "dist").glob("*.whl"), (scratch / "dist").glob("*.tar.gz")
    return wheel


def installed(environment: Path, wheel: Path) -> Path:
    """The `msp-bridge` of a new environment with the wheel, mutmut and pytest."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    install = [UV, "pip", "install", "--quiet", "--python", environment]
    install += ["--constraint", ROOT / "constraints.txt"]
    done = subprocess.run([*install, wheel, "mutmut", "pytest"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return environment / "bin/msp-bridge"


def check_contents(wheel: Path) -> None:
    """It has types and pages, and metadata that can be read without the repository."""
    with zipfile.ZipFile(wheel) as packed:
        names = {*packed.namelist()}
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        fields = email.message_from_bytes(packed.read(metadata))
    assert "msp_bridge/py.typed" in names
    pages = {f"msp_bridge/docs/{page.relative_to(ROOT / 'docs').as_posix()}" for page in (ROOT / "docs").rglob("*.md")}
    assert pages <= names
    assert fields["License-Expression"] == "Apache-2.0"
    assert fields["Description-Content-Type"] == "text/markdown"
    text = fields.get_payload()
    assert isinstance(text, str)
    assert text.startswith("# msp-bridge\n")
    assert re.findall(r"\]\((?!https?:|#)[^)]+\)", text) == []


def contents(project: Path) -> dict[Path, bytes]:
    files = (path for path in project.rglob("*") if path.is_file() and ".venv" not in path.parts)
    return {path: path.read_bytes() for path in files}


async def test_the_path_of_a_new_user_in_a_bare_environment(tmp_path: Path) -> None:
    project, scratch, reports = example(tmp_path), tmp_path / "source", tmp_path / "reports"
    scratch.mkdir()
    reports.mkdir()
    wheel = built(scratch)
    check_contents(wheel)
    program = installed(project / ".venv", wheel)
    before = contents(project)
    bare = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    bare |= {"HOME": str(tmp_path), "MSP_BRIDGE_CACHE": str(tmp_path / "cache"), "COLUMNS": "200"}

    def bridge(
        directory: Path, *arguments: str, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        argv = [str(program), *arguments]
        return subprocess.run(argv, cwd=directory, env={**bare, **(env or {})}, capture_output=True, text=True)

    html = walk(bridge, project, reports)
    assert contents(project) == before
    if chromium.PROGRAM is not None:
        async with chromium.tab(tmp_path) as browser:
            await browser.no_network()
            await browser.go(html.as_uri())
            await browser.until("cart.py", "receipt.py")
