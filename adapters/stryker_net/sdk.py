"""The .NET SDK: its version, its packages' restore, and its test host, which is compiled ahead of time.

The test host that a project gets from its package (Microsoft.NET.Test.Sdk) is compiled when it runs: a third of the
processor time of a mutant with quick tests. The SDK has the same assemblies with machine code in them. So they take the
place of those in the private copy.

Invariants:
- Only a later version takes the place of an earlier one, a package as a whole, on a runtime that it is made for: what
  a project gets when it updates the package. Assemblies that users' code may use for itself (Newtonsoft.Json) are
  replaced by the same version only.
- A file is replaced, never written to: it may be a link to the user's NuGet cache. The original stays beside it. It
  is put back before the tool runs again, and when the tests can't be run with what took its place.
"""

import asyncio
import re
import shutil
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from msp_bridge import reading
from msp_bridge.adapter import ToolError
from msp_bridge.processes import ProcessTree

from .hosts import CONNECT_TIMEOUT_S, printed
from .vstest import HOST, framework_of

TEST_HOST = (  # of the package Microsoft.TestPlatform.TestHost
    HOST,
    *(f"Microsoft.TestPlatform.{name}.dll" for name in ("CommunicationUtilities", "CrossPlatEngine", "Utilities")),
    "Microsoft.VisualStudio.TestPlatform.Common.dll",
)
OBJECT_MODEL = (  # of Microsoft.TestPlatform.ObjectModel, on which adapters of test frameworks depend, too
    *(f"Microsoft.TestPlatform.{name}.dll" for name in ("CoreUtilities", "PlatformAbstractions")),
    "Microsoft.VisualStudio.TestPlatform.ObjectModel.dll",
)
SHARED = ("Newtonsoft.Json.dll",)
ORIGINAL = ".before-msp-bridge"
FIXED_FILE_INFO = b"\xbd\x04\xef\xfe\x00\x00\x01\x00"  # a signature and a version; four numbers of 16 bits follow
TARGET = re.compile(rb"\.NETCoreApp,Version=v(\d+)\.(\d+)")


async def sdk_version(cwd: Path, env: Mapping[str, str]) -> str:
    """Version of the .NET SDK that `dotnet` takes in `cwd`, where a global.json may ask for one. Raises `ToolError`."""
    return (await _printed(["dotnet", "--version"], cwd, env))[-1]


async def sdk_directory(cwd: Path, env: Mapping[str, str]) -> Path | None:
    """Directory of that SDK; None when `dotnet` doesn't list it. Raises `ToolError`."""
    version = await sdk_version(cwd, env)
    for line in await _printed(["dotnet", "--list-sdks"], cwd, env):  # 10.0.100 [/usr/share/dotnet/sdk]
        name, _, directory = line.partition(" [")
        if name == version:
            return Path(directory.removesuffix("]"), name)
    return None


async def restore(built: Path, env: Mapping[str, str]) -> None:
    """Have NuGet restore the packages of the solution or project `built`. Raises `ToolError`.

    One node of MSBuild evaluates all projects: to start another takes longer than it saves, unless there are dozens.
    """
    await _printed(["dotnet", "restore", str(built), "-m:1"], built.parent, env)


def take_precompiled(sdk: Path, assembly: Path) -> bool:
    """Have the tests `assembly` run by the test host of the SDK in `sdk`, if that may be. Whether it is so."""
    directory = assembly.parent
    framework = tuple(int(number) for number in (framework_of(assembly) or "0.0").split("."))
    if not _is_later(TEST_HOST, sdk, directory, framework):
        return False
    # An object model that isn't replaced is a later one than the SDK's: also NuGet combines it with an older host.
    model = OBJECT_MODEL if _is_later(OBJECT_MODEL, sdk, directory, framework) else ()
    versions = {name: [_version(reading.content_or_empty(at / name)) for at in (directory, sdk)] for name in SHARED}
    same = (name for name, (own, other) in versions.items() if own and own == other)
    for name in (*TEST_HOST, *model, *same):
        file = directory / name
        if not Path(f"{file}{ORIGINAL}").exists():  # else these were tests in the directory of others
            fresh = shutil.copyfile(sdk / name, f"{file}{ORIGINAL}.new")
            file.replace(f"{file}{ORIGINAL}")
            Path(fresh).replace(file)
    return True


def _is_later(names: Sequence[str], sdk: Path, directory: Path, framework: tuple[int, ...]) -> bool:
    """Whether the assemblies `names` are in both directories, no older in that of the SDK, and run on `framework`."""
    pairs = [(reading.content_or_empty(directory / name), reading.content_or_empty(sdk / name)) for name in names]
    return all(
        own and other and _version(other) >= _version(own) and _target(other) <= framework for own, other in pairs
    )


def _version(content: bytes) -> tuple[int, ...]:
    """File version of an assembly, four numbers; empty if it has none."""
    at = content.find(FIXED_FILE_INFO) + len(FIXED_FILE_INFO)
    if at < len(FIXED_FILE_INFO):
        return ()
    minor, major, revision, build = struct.unpack_from("<4H", content, at)
    return major, minor, build, revision


def _target(content: bytes) -> tuple[int, ...]:
    """The version of .NET that an assembly is made for; none for .NET Standard."""
    found = TARGET.search(content)
    return tuple(map(int, found.groups())) if found else ()


async def _printed(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> list[str]:
    """The lines that `command` prints, one at least. Raises `ToolError`."""
    try:
        async with (
            ProcessTree.running(command, cwd=cwd, env=env, grace=0, pid_namespace=False) as tree,
            asyncio.timeout(CONNECT_TIMEOUT_S),
        ):
            lines = [line.strip() for line in (await tree.output()).decode("utf-8", "replace").splitlines()]
            code = await tree.exited()
    except TimeoutError:
        raise ToolError(f"`{' '.join(command)}` gives no answer", "install the .NET SDK") from None
    if code != 0 or not lines:
        raise ToolError(f"`{' '.join(command)}` failed ({printed(tree)})", "install the .NET SDK")
    return lines
