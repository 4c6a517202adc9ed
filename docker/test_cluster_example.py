"""The image and the commands of examples/cluster, in real containers: a scheduler, two workers and a client."""

# ruff: noqa: D103
from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from conftest import ROOT
from engine import Engine

EXAMPLE = ROOT / "examples" / "cluster"
SERVICES = yaml.safe_load((EXAMPLE / "compose.yaml").read_text("utf-8"))["services"]


@pytest.fixture(scope="session")
def image(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> str:
    """That of the example, with the bridge of this tree in the place of a release."""
    context = tmp_path_factory.mktemp("context")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", context, ROOT], check=True
    )
    (wheel,) = context.glob("*.whl")
    file = (EXAMPLE / "Dockerfile").read_text("utf-8")
    for released, ours in {
        "FROM python:3.13-slim": f"FROM {engine.python_image('3.13')}",
        "COPY requirements.tx[t]": "COPY *.whl requirements.tx[t]",
        "'msp-bridge[cluster]'": f"'/tmp/requirements/{wheel.name}[cluster]'",
    }.items():
        assert released in file
        file = file.replace(released, ours)
    return engine.build("localhost/msp-bridge-test/cluster", context, file)


class Services:
    """The services of the compose file, each by its own command, at a free port of loopback."""

    def __init__(self, engine: Engine, image: str) -> None:
        self._engine, self._image = engine, image
        self.names: list[str] = []
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = str(free.getsockname()[1])

    def argv(self, service: str, *options: str) -> list[str]:
        """What runs one: its command, for scheduler:8786 is 127.0.0.1 and the free port here."""
        self.names.append(f"msp-bridge-test-{uuid.uuid4().hex[:12]}")
        there = {"8786": self._port, "0.0.0.0": "127.0.0.1"}  # noqa: S104
        command = [
            re.sub("8786|0[.]0[.]0[.]0", lambda found: there[found[0]], word) for word in SERVICES[service]["command"]
        ]
        place = ["--name", self.names[-1], "--add-host", "scheduler:127.0.0.1"]
        return self._engine.argv(*place, *options, self._image, *command)

    @contextlib.contextmanager
    def started(self, service: str, log: Path) -> Iterator[None]:
        """In the background, until the end of the block. What it prints goes to `log`."""
        argv = self.argv(service)
        name = self.names[-1]
        with (
            log.open("wb") as printed,
            subprocess.Popen(
                argv, env=self._engine.environment, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed
            ),
        ):
            try:
                yield
            finally:
                self._engine("rm", "--force", name, check=False)


def test_the_services_of_the_compose_file_test_a_project(
    engine: Engine, image: str, project: Path, tmp_path: Path
) -> None:
    services = Services(engine, image)
    logs = [tmp_path / name for name in ("scheduler", "worker0", "worker1")]
    with contextlib.ExitStack() as running:
        for log in logs:
            running.enter_context(services.started(log.name.rstrip("01"), log))
        argv = services.argv("client", "--volume", f"{project}:/project:ro")
        few = ["--jobs", "1"]  # so that the mutants are too many for this machine
        done = subprocess.run([*argv, *few], env=engine.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for status, count in {"Killed": 41, "Survived": 6, "NoCoverage": 2}.items():
        assert re.search(rf"(?m)^{status} +{count} *$", done.stdout), done.stdout
    assert "worker" not in done.stderr, "none was lost or refused"
    assert any("function 'progress'" in log.read_text() for log in logs[1:]), "workers were asked for results"


def test_the_user_of_the_image_is_one_that_kubernetes_knows_not_to_be_root(engine: Engine, image: str) -> None:
    """`runAsNonRoot` refuses a user that is given by a name."""
    user = engine("image", "inspect", "--format", "{{.Config.User}}", image).strip()
    assert user.isdecimal()
    assert int(user) > 0


def test_a_worker_of_the_kubernetes_example_keeps_files_in_a_volume_of_roots(
    engine: Engine, image: str, tmp_path: Path
) -> None:
    """An `emptyDir` belongs to root, and anybody may write into it."""
    volume = tmp_path / "volume"
    volume.mkdir()
    volume.chmod(0o777)
    code = (
        "import os; from pathlib import Path; from msp_bridge.environment.cache import cache_of, make_private;"
        "root = Path.home(); cache = cache_of(root); make_private(cache, root); (cache / 'x').touch(); print('kept')"
    )
    mount = ["--volume", f"{volume}:/var/cache/msp-bridge"]
    assert engine(*engine.argv(*mount, image, "python", "-c", code)[1:]) == "kept\n"
