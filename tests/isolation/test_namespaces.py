"""Worlds of their own, with real processes: as the user of the tests, and as an unprivileged one when that is root."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from msp_bridge.isolation import command
from msp_bridge.testing import TreeState

NOBODY = 65534
PRELUDE = """
import errno, os, signal, socket, subprocess, sys, time
from pathlib import Path
sys.path.insert(0, {here!r})
from isolation.namespaces import *
root, base = Path({root!r}), Path({base!r})
world = enter_host({root!r}, {copy!r}, {layers!r}, keep=[".venv", "missing"], share=[{share!r}])
def child(body, parts=None, limits=None):
    sys.stdout.flush()
    parts = world.parts if parts is None else parts
    pid, namespace = world.fork(parts)
    if pid == 0:
        code = 99
        try:
            world.enter_child(parts, limits)
            code = body() or 0
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
        finally:
            os._exit(code)
    return pid, namespace
def ended(child):
    pid, namespace = child
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    world.end_child(pid, namespace)
    return code
def run(body, parts=None, limits=None):
    return ended(child(body, parts, limits))
def stray(writer):
    "A process that has left its parent, its group and its session; it holds `writer` open."
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()
"""


@dataclass(frozen=True)
class Place:
    """A project, its copy, and somebody who runs Python code there."""

    base: Path
    user: int
    python: str

    @property
    def root(self) -> Path:
        return self.base / "home" / "project"

    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.base / "home")}

    def command(self, *arguments: str) -> list[str]:
        """The arguments for the interpreter, as the user."""
        change = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"]
        return [*(change if self.user != os.getuid() else []), self.python, *arguments]

    def path(self, name: str) -> str:
        return str(self.base / "home" / "cache" / name)

    def script(self, source: str) -> list[str]:
        known = {"here": str(self.base), "base": str(self.base), "root": str(self.root)}
        prelude = PRELUDE.format(**known, copy=self.path("copy"), layers=self.path("layers"), share=self.path("share"))
        file = self.base / "script.py"
        file.write_text(prelude + textwrap.dedent(source))
        return self.command(str(file))

    def refused_mount(self) -> str:
        """Why this machine permits the user no namespaces; empty where it does."""
        look = f"import sys; sys.path.insert(0, {str(self.base)!r}); from isolation import namespaces; print(namespaces.probe()[1].get('mount', ''))"
        return subprocess.run(self.command("-c", look), capture_output=True, text=True, check=True).stdout.strip()

    def done(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """What it printed, and how it ended, in the project."""
        streams = {"capture_output": True, "text": True}
        return subprocess.run(command, cwd=self.root, env=self.environment(), timeout=60, check=False, **streams)

    def run(self, source: str) -> str:
        """Standard output of the code, which runs in the host; the user's tree stays the same to the byte."""
        before = TreeState.of(self.root)
        done = self.done(self.script(source))
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        assert before.differences(TreeState.of(self.root)) == []
        return done.stdout.strip()


@cache
def interpreter(user: int) -> str | None:
    """One that the user may run, and it itself again."""
    again = "import subprocess, sys; subprocess.run([sys.executable, '-c', ''], check=True)"
    change = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user != os.getuid() else []
    if change and not shutil.which("setpriv"):
        return None
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([*change, python, "-c", again], capture_output=True, check=False).returncode == 0:
            return python
    return None


REFUSED_MOUNT: dict[int, str] = {}  # for each user


@pytest.fixture(params=["own", "unprivileged"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "unprivileged" and os.getuid():
        pytest.skip("the tests' own user is unprivileged already")
    user = os.getuid() if request.param == "own" else NOBODY
    if (python := interpreter(user)) is None:
        pytest.skip(f"no interpreter that user {user} may run")
    base = Path(tempfile.mkdtemp(prefix="msp-bridge-isolation-")).resolve()
    try:
        one = Place(base, user, python)
        shutil.copytree(command.HERE, base / "isolation", ignore=shutil.ignore_patterns("__pycache__"))
        for directory in ("home/project/.venv", "home/cache/copy", "home/cache/layers", "home/cache/share"):
            (base / directory).mkdir(parents=True)
        for where, text in ((one.root, "user's"), (base / "home/cache/copy", "copy's")):
            (where / "file").write_text(text)
            (where / "package").mkdir()
            (where / "package" / "module").write_text(text)
        (one.root / ".venv" / "marker").write_text("venv")
        for path in (base, *base.rglob("*")):
            os.chown(path, user, user if user != os.getuid() else -1)
        if user not in REFUSED_MOUNT:
            REFUSED_MOUNT[user] = one.refused_mount()
        if REFUSED_MOUNT[user]:
            pytest.skip(f"this machine permits no namespaces: {REFUSED_MOUNT[user]}")
        yield one
    finally:
        shutil.rmtree(base)


def test_the_copy_stands_at_the_projects_own_path(place: Place) -> None:
    said = place.run("""
        (root / "new").write_text("")
        print(Path("file").read_text(), (root / "file").read_text(), os.getcwd() == str(root), os.listdir(root / ".venv"))
        try:
            (root / ".venv" / "new").write_text("")
        except OSError as error:
            print(errno.errorcode[error.errno])
    """)
    assert said == "copy's copy's True ['marker']\nEROFS"
    assert (place.base / "home/cache/copy/new").exists()


def closed_mounts() -> list[str]:
    """What others have mounted below /tmp meanwhile, such as a test with a full disk: nobody else may look into it."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return [where for where in (line.split()[1] for line in mounts) if where.startswith("/tmp/")]


def test_what_a_child_writes_is_gone_after_it(place: Place, request: pytest.FixtureRequest) -> None:
    if "unprivileged" in request.node.name and closed_mounts():
        pytest.skip("another test has mounted something below /tmp, where this user can't cover /tmp")
    places = ("Path(p) for p in ('file', 'package/module', '.venv/marker', '/tmp/msp-x', '/var/tmp/msp-x', '/dev/shm/msp-x', "
              "str(base / 'home/msp-x'), str(base / 'msp-x'))")  # fmt: skip
    said = place.run(f"""
        def write():
            for path in ({places}):
                path.write_text("mutant's")
            Path("package/module").unlink()
            Path("package").rmdir()
            Path("package").mkdir()
            os.chmod("file", 0)
        for turn in range(2):
            print(run(write), Path("file").read_text(), Path("package/module").read_text(), Path(".venv/marker").read_text())
            print([str(p) for p in ({places}) if p.name == "msp-x" and p.exists()])
    """)
    assert said == "\n".join(["0 copy's copy's venv", "[]"] * 2)
    assert (place.base / "home/cache/copy/package/module").read_text() == "copy's"
    assert not list((place.base / "home/cache/layers").iterdir())


def test_a_child_reads_what_is_there_and_shares_what_it_should(place: Place) -> None:
    (place.base / "home" / "settings").write_text("mine")
    (place.base / "elsewhere").write_text("data")
    said = place.run(f"""
        os.chdir("package")
        def look():
            print(Path(base / "home/settings").read_text(), Path(base / "elsewhere").read_text(), os.getcwd() == str(root / "package"))
            print(Path("module").read_text(), Path("../.venv/marker").read_text(), flush=True)
            Path({place.path("share")!r}, "result").write_text("kept")
        print(run(look))
    """)
    assert said == "mine data True\ncopy's venv\n0"
    assert (place.base / "home/cache/share/result").read_text() == "kept"


def test_the_interpreter_may_lie_in_the_project(place: Place) -> None:
    shutil.rmtree(place.root / ".venv")
    subprocess.run(place.command("-m", "venv", "--without-pip", str(place.root / ".venv")), check=True)
    inside = Place(place.base, place.user, str(place.root / ".venv/bin/python"))
    said = inside.run("""
        def look():
            subprocess.run([sys.executable, "-c", "import colorsys, sys; print(sys.prefix)"], check=True)
        print(run(look))
    """)
    assert said == f"{place.root}/.venv\n0"


def test_two_children_have_the_same_port_and_loopback(place: Place) -> None:
    said = place.run("""
        reader, writer = os.pipe()
        def serve(wait):
            with socket.create_server(("127.0.0.1", 48761)) as server, socket.create_connection(("127.0.0.1", 48761)):
                if wait:
                    os.read(reader, 1)
        first = child(lambda: serve(True))
        print(run(lambda: serve(False)))
        os.write(writer, b"x")
        print(ended(first))
    """)
    assert said == "0\n0"


def test_ipc_and_shared_memory_work_inside(place: Place) -> None:
    said = place.run("""
        def share():
            from multiprocessing import Lock, get_context, shared_memory
            import sqlite3
            with Lock():
                memory = shared_memory.SharedMemory(create=True, size=10)
            process = get_context("spawn").Process(target=print, args=("spawned",))
            process.start()
            process.join()
            memory.close()
            memory.unlink()
            sqlite3.connect("db").execute("create table x (y)").connection.close()
            return process.exitcode
        if __name__ == "__main__":
            print(run(share))
    """)
    assert said == "spawned\n0"


def test_strays_end_with_their_child(place: Place) -> None:
    said = place.run("""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        one = child(lambda: stray(writer))
        os.close(writer)
        print(ended(one), os.read(reader, 1))  # at once: whoever held the writer is gone
    """)
    assert said == "0 b''"


def test_a_child_ends_as_the_test_process_ended(place: Place) -> None:
    ends = [0, 3, 255]
    ends += [-signal.SIGKILL, -signal.SIGTERM, -signal.SIGSEGV, -signal.SIGALRM, -signal.SIGINT]
    assert place.run(f"""
        def body(end):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if end < 0:
                os.kill(os.getpid(), -end)
                time.sleep(60)
            return end
        for end in {[*map(int, ends)]}:
            print(run(lambda: body(end)), run(lambda: body(end), parts={{"overlay"}}))
    """).splitlines() == [f"{end:d} {end:d}" for end in ends]


def test_signals_reach_the_handlers_of_the_test_process(place: Place) -> None:
    said = place.run("""
        def body():
            got = []
            for name in (signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1):
                signal.signal(name, lambda number, _: got.append(number))
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(0, signal.SIGUSR1)
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            while len(got) < 3:
                time.sleep(0.01)
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(60)
            except KeyboardInterrupt:
                print(sorted(got) == sorted([signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1]), flush=True)
        print(run(body))
    """)
    assert said == "True\n0"


def test_limits_hold_and_leave_others_alone(place: Place) -> None:
    said = place.run("""
        def memory():
            try:
                bytearray(1 << 31)
            except MemoryError:
                print("MemoryError", flush=True)
        def size():
            try:
                Path("big").write_bytes(bytes(1 << 21))
            except OSError as error:
                print(errno.errorcode[error.errno], flush=True)
        print(run(memory, limits=JobLimits(memory=1 << 30)), run(size, limits=JobLimits(file_size=1 << 20)))
        print(run(size, limits=JobLimits(written=1 << 20)) if world.layers.in_memory else "ENOSPC\\n0")
    """)
    assert said == "MemoryError\nEFBIG\n0 0\nENOSPC\n0"


def test_one_childs_fork_bomb_does_not_hinder_another(place: Place) -> None:
    if place.user == 0 and tuple(map(int, os.uname().release.split(".")[:2])) < (6, 14):
        pytest.skip("before Linux 6.14 the kernel limits no processes of root")
    said = place.run("""
        ready, written = os.pipe()
        hold, release = os.pipe()
        def bomb():
            try:
                for started in range(5000):
                    if os.fork() == 0:
                        os.read(hold, 1)
                        os._exit(0)
            except OSError as error:
                print(errno.errorcode[error.errno], 50 <= started <= 600, flush=True)
            os.write(written, b"x")
            os.read(hold, 1)
        def fork():
            if os.fork() == 0:
                os._exit(0)
            os.wait()
        first = child(bomb, limits=JobLimits(processes=200))
        os.read(ready, 1)
        print(run(fork, limits=JobLimits(processes=200)))
        os.write(release, bytes(5001))
        print(ended(first))
    """)
    assert said == "EAGAIN True\n0\n0"


def test_a_process_namespace_serves_children_of_the_same_parts_one_after_another(place: Place) -> None:
    """The largest pid, by which processes are limited, is one of the namespace."""
    assert (
        place.run("""
        found = []
        def look():
            namespace = os.stat("/proc/self/ns/pid").st_ino
            os.write(writer, f"{os.getpid()} {namespace} {Path('/proc/sys/kernel/pid_max').read_text()}".encode())
        reader, writer = os.pipe()
        for parts, limits in [(world.parts | {"limits"}, JobLimits(processes=200)), (world.parts, None)] * 2:
            run(look, parts, limits)
            pid, namespace, pids = os.read(reader, 1000).split()
            found.append((int(pid), namespace, pids))
        first, second, third, fourth = found
        assert first[1] == third[1] != second[1] == fourth[1], found
        assert first[0] < third[0] and first[2] == third[2] and second[2] == fourth[2], found
        if os.geteuid() == 0 and tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 14):
            assert int(first[2]) == 500 < int(second[2]), found
        for init in world.processes:
            os.kill(init, signal.SIGKILL)
            os.waitid(os.P_PID, init, os.WEXITED | os.WNOWAIT)  # else the next child may still be forked, and killed
        run(look)
        assert os.read(reader, 1000).split()[1] not in (third[1], fourth[1])
        left = world.processes
        world.keep_free(1)
        assert len(left) == len(world.processes) + 1, left
        world.end()
        assert not world.processes
        print("as it should be")
    """)
        == "as it should be"
    )


def test_permissions_bite_as_they_do_outside(place: Place) -> None:
    read = """
        import os
        from pathlib import Path
        Path("locked").write_text("x")
        os.chmod("locked", 0)
        try:
            print(Path("locked").read_text(), os.getuid())
        except OSError as error:
            print(type(error).__name__, os.getuid())
    """
    (place.base / "outside").mkdir(mode=0o777)
    os.chown(place.base / "outside", place.user, -1)
    plain = subprocess.run(
        place.command("-c", textwrap.dedent(read)), cwd=place.base / "outside", capture_output=True, text=True
    )
    said = place.run(f"""
        print(run(lambda: subprocess.run([sys.executable, "-c", {textwrap.dedent(read)!r}]).returncode, limits=JobLimits(processes=500)))
    """)
    assert said == f"{plain.stdout}0"


def test_parts_can_be_switched_off(place: Place) -> None:
    assert place.run("""
        outside = [os.readlink(f"/proc/self/ns/{name}") for name in ("pid", "net", "ipc", "mnt")]
        def look():
            print([a == b for a, b in zip(outside, (os.readlink(f"/proc/self/ns/{name}") for name in ("pid", "net", "ipc", "mnt")))])
            sys.stdout.flush()
        for parts in ((), {"pid"}, {"net"}, {"ipc"}, None):
            print(run(look, parts))
    """).split("\n")[::2] == [
        "[True, True, True, False]",
        "[False, True, True, False]",
        "[True, False, True, False]",
        "[True, True, False, False]",
        "[False, False, False, False]",
    ]


def isolated(place: Place, *arguments: str) -> list[str]:
    world = {"root": str(place.root), "copy": place.path("copy"), "layers": place.path("layers")}
    options = {**world, "command": arguments}
    main = f"import sys; sys.path.append({str(place.base)!r}); from isolation.command import main; main({options})"
    return place.command("-c", main)


def test_a_command_waits_for_no_slow_import() -> None:
    argv = [sys.executable, "-I", "-S", "-c", f"{command.BOOT}print(*sys.modules)"]
    imported = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert "isolation.command" in imported
    assert not {"dataclasses", "json", "re", "threading", "traceback", "typing"}.intersection(imported)


def test_a_command_runs_in_a_world_and_is_seen_to_end_as_it_did(place: Place) -> None:
    def run(*command: str) -> tuple[int, str, str]:
        done = place.done(isolated(place, *command))
        return done.returncode, done.stdout, done.stderr

    assert run("sh", "-c", "cat file; echo x > file; exit 7") == (7, "copy's", "")
    assert (place.base / "home/cache/copy/file").read_text() == "copy's"
    assert run("sh", "-c", "kill -9 $$") == (128 + signal.SIGKILL, "", "")
    assert run("/no/such/program") == (127, "", "/no/such/program: No such file or directory\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGALRM, signal.SIGKILL])
def test_a_signal_to_what_runs_a_command_ends_everything(place: Place, number: int) -> None:
    script = "trap '' TERM; setsid sleep 600 & echo ready; wait"
    command = isolated(place, "sh", "-c", script)
    with subprocess.Popen(command, cwd=place.root, env=place.environment(), stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"ready\n"
        runner.send_signal(number)
        assert runner.stdout.read() == b""  # the end of it: nobody has it open any more
    assert runner.returncode == -number


UNMOUNT = "import ctypes, os, sys; print(ctypes.CDLL(None).umount2(os.fsencode(sys.argv[1]), 2), flush=True)"


def test_a_child_that_unmounts_the_copy_writes_nowhere_into_the_tree(place: Place) -> None:
    """By itself and by a program, as often as there are layers; for root, too, and for a user namespace's root."""
    said = place.run(f"""
        import ctypes
        def unmount():
            for _ in range(5):
                print(ctypes.CDLL(None).umount2(os.fsencode(root), 2), flush=True)
                subprocess.run([sys.executable, "-c", {UNMOUNT!r}, str(root)])
            for path in (root / "file", root / "new"):
                path.write_text("harmed")
        print(run(unmount))
    """)
    assert said.split() == ["-1"] * 10 + ["0"]


REFUSED = """
import os, sys
sys.path.insert(0, {here!r})
from isolation import kernel, namespaces
kernel.own_user_namespace()
open("/proc/sys/user/max_user_namespaces", "w").write("0")
kernel.set_capabilities((0, 0, 0, 0))
namespace = os.readlink("/proc/self/ns/mnt")
parts, refused = namespaces.probe()
print(sorted(parts), list(refused))
try:
    namespaces.enter_host({root!r}, {copy!r}, {layers!r})
except namespaces.PartRefused as refusal:
    print(refusal, namespace == os.readlink("/proc/self/ns/mnt"))
"""


def test_where_the_kernel_refuses_nothing_is_changed(place: Place) -> None:
    source = REFUSED.format(
        here=str(place.base), root=str(place.root), copy=place.path("copy"), layers=place.path("layers")
    )
    done = place.done(place.command("-c", source))
    assert done.stdout.splitlines() == ["[] ['mount']", "unshare: No space left on device True"], done.stderr
