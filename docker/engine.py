"""Builds and runs images with Docker, or with podman where no Docker engine runs, for the tests of this folder.

Where the base images can't be had, stand-ins are made of Debian's packages (mmdebstrap), with the same Python.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
CERTIFICATES = Path("/etc/ssl/certs")  # the host's: where builds reach the package index by a proxy
DEBIAN = {"3.13": "trixie", "3.11": "bookworm"}  # the releases with these versions of Python


class Unavailable(Exception):
    """Images can't be built or run on this machine; the message says why."""


class Engine:
    """`docker` or `podman`, whichever works here."""

    def __init__(self, program: str, scratch: Path) -> None:
        self.program = program
        self._scratch = scratch
        self._environment: Mapping[str, str] = os.environ
        self._build = ["build"]
        self._run = ["run", "--rm", "--network", "host"]
        if program == "podman":
            certificates = ["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"]
            self._build += ["--isolation", "chroot", "--network", "host", "--format", "docker", *certificates]
            self._run += ["--no-healthcheck"]  # its timer needs systemd; the tests ask by themselves

    @classmethod
    def find(cls, scratch: Path) -> Engine:
        """The one that works here. Raises Unavailable."""
        if shutil.which("docker") and not subprocess.run(["docker", "info"], capture_output=True).returncode:
            return cls("docker", scratch)
        if shutil.which("podman"):
            return cls("podman", scratch)
        raise Unavailable("neither a Docker engine nor podman is here: apt-get install podman runc mmdebstrap")

    def __call__(self, *arguments: str, check: bool = True) -> str:
        """What the engine prints on stdout. Raises RuntimeError with its stderr when it fails and shouldn't."""
        done = subprocess.run([self.program, *arguments], env=self._environment, capture_output=True, text=True)
        if check and done.returncode:
            raise RuntimeError(f"{self.program} {' '.join(arguments)}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        return done.stdout

    def argv(self, *arguments: str) -> list[str]:
        """The command line that runs a container: options, image, arguments."""
        return [self.program, *self._run, *arguments]

    @property
    def environment(self) -> Mapping[str, str]:
        """That in which `argv` works."""
        return self._environment

    def python_image(self, version: str) -> str:
        """The name of an image with this Python, which is here now. Raises Unavailable."""
        real = f"docker.io/library/python:{version}-slim"
        image = real if not self._fails("pull", "--quiet", real) else self._stand_in(version)
        if self._fails(*self._run, image, "python3", "--version"):
            self._be_modest()
            if self._fails(*self._run, image, "python3", "--version"):
                raise Unavailable(f"{self.program} can't run a container here: {self.program} run {image}")
        return image

    def build(self, tag: str, context: Path, dockerfile: str | None = None, **values: str) -> str:
        """The tag of the image that `dockerfile`, or else the context's own, makes with these build arguments."""
        file = context / "Dockerfile"
        if dockerfile is not None:
            file = self._scratch / f"Dockerfile-{tag.replace('/', '-')}"
            file.write_text(dockerfile)
        arguments = [f"--build-arg={name}={value}" for name, value in values.items()]
        self(*self._build, "--tag", tag, "--file", str(file), *arguments, str(context))
        return tag

    def _stand_in(self, version: str) -> str:
        tag = f"localhost/msp-bridge-test/python:{version}"
        if not self._fails("image", "inspect", tag):
            return tag
        if not shutil.which("mmdebstrap"):
            raise Unavailable(
                f"the image python:{version}-slim can't be had, nor a stand-in: apt-get install mmdebstrap"
            )
        with tempfile.TemporaryDirectory() as folder:
            tree = str(Path(folder) / "tree.tar")
            links = "".join(f'ln -s /usr/bin/python3 "$1/usr/local/bin/{name}"; ' for name in ("python", "python3"))
            like_the_image = links + 'rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED'
            how = ["--quiet", "--variant=minbase", f"--customize-hook={like_the_image}"]
            packages = "--include=python3,python3-pip,ca-certificates"
            subprocess.run(["mmdebstrap", *how, packages, DEBIAN[version], tree], check=True)
            self("import", tree, tag)
        return tag

    def _fails(self, *arguments: str) -> bool:
        return bool(subprocess.run([self.program, *arguments], env=self._environment, capture_output=True).returncode)

    def _be_modest(self) -> None:
        """Within a container ourselves, podman may set no limits but ours, and crun may not know the control groups."""
        limits = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
        modest = {name: min(1024, *resource.getrlimit(kind)) for name, kind in limits.items()}
        ulimits = ", ".join(f'"{name}={limit}:{limit}"' for name, limit in modest.items())
        file = self._scratch / "containers.conf"
        file.write_text(f'[containers]\ndefault_ulimits = [{ulimits}]\n[engine]\nruntime = "runc"\n')
        self._environment = {**os.environ, "CONTAINERS_CONF": str(file)}
