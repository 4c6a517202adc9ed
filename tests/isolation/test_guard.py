"""What a guarded process may do, and at what the kernel ends it."""

import mmap
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import programs

from msp_bridge.isolation import guard

pytestmark = programs.needs_guard

PREPARED = """
import asyncio, ctypes, faulthandler, fcntl, multiprocessing, os, resource, select, shutil, signal, socket
import sqlite3, subprocess, sys, tempfile, threading, time
from multiprocessing import shared_memory
from msp_bridge.isolation import guard
inherited, written = os.pipe()
listening = socket.create_server(("127.0.0.1", 0))
unnamed = tempfile.TemporaryFile()
unnamed.write(b"before")
unnamed.flush()
named = open("named", "w+")
source = open(__file__)
source.read(3)
temporary = unnamed.fileno()
os.dup2(os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
parent = os.getppid()

async def sleep():
    await asyncio.gather(asyncio.sleep(0.01), asyncio.to_thread(time.sleep, 0.01))

def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()

def own_signal():
    got = []
    signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
    os.kill(os.getpid(), signal.SIGUSR1)
    signal.raise_signal(signal.SIGUSR1)
    assert got == [1, 1]

def alarm():
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    signal.pause()

def pair():
    one, other = socket.socketpair()
    one.setblocking(False)
    one.send(b"x")
    assert other.recv(1) == b"x"

def pipe():
    reader, writer = os.pipe()
    os.write(writer, b"x")
    assert os.read(reader, 1) == b"x" and select.select([reader], [], [], 0)[0] == []

def in_memory():
    database = sqlite3.connect(":memory:")
    database.execute("create table a(b)")
    database.commit()

def caught():
    for number in range(1, 32):
        try:
            signal.signal(number, lambda *_: None)
        except OSError:
            pass
    try:
        os.mkdir("made")
    finally:
        os._exit(0)
"""
ALLOWED = {
    "nothing": "pass",
    "read a file": "open(__file__).read()",
    "list a directory": "os.listdir('/'), os.path.realpath('log'), os.stat('.'), os.chdir('/')",
    "threads": "in_thread(time.time)",
    "asyncio": "asyncio.run(sleep())",
    "own signals": "own_signal()",
    "timers": "alarm()",
    "a pair of sockets": "pair()",
    "a pipe": "pipe()",
    "random numbers": "os.urandom(4)",
    "memory": "len(bytearray(50_000_000))",
    "a database in memory": "in_memory()",
    "the log": "os.write(2, b'lost'), sys.stderr.write('lost')",
    "faulthandler": "faulthandler.enable(), faulthandler.dump_traceback()",
    "wait for no child": "subprocess._cleanup(), multiprocessing.active_children()",
    "a temporary file that it has": "os.write(temporary, b'after'), os.lseek(temporary, 0, 0)",
    "what it reads": "source.seek(0), source.read(100)",
    "limits": "resource.getrlimit(resource.RLIMIT_AS), resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))",
    "import": "import colorsys, decimal, zoneinfo",
}
ENDED = {
    "write": "open('made', 'w')",
    "append": "open('log', 'a')",
    "open to read and write": "open('named', 'r+')",
    "no name": "os.open('.', os.O_TMPFILE | os.O_RDWR)",
    "temporary file": "tempfile.TemporaryFile()",
    "directory": "os.mkdir('made')",
    "remove": "os.unlink('missing')",
    "mode": "os.chmod('named', 0o600)",
    "times": "os.utime('named')",
    "rename": "os.rename('missing', 'made')",
    "link": "os.symlink('a', 'made')",
    "truncate": "os.truncate('named', 0)",
    "queue": "os.mkfifo('made')",
    "program": "subprocess.run(['true'])",
    "program by posix_spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "fork": "os.fork() or os._exit(0)",
    "become another": "os.execv('/bin/true', ['true'])",
    "in a thread": "in_thread(lambda: os.mkdir('made'))",
    "signal to another": "os.kill(parent, 0)",
    "signal to a group": "os.killpg(os.getpgid(parent), 0)",
    "session": "os.setsid()",
    "socket": "socket.socket()",
    "accept": "listening.accept()",
    "lock of processes": "multiprocessing.Lock()",
    "shared memory": "shared_memory.SharedMemory(create=True, size=1)",
    "queue of System V": "ctypes.CDLL(None).msgget(0, 0o1600)",
    "lock of a file": "fcntl.flock(source, fcntl.LOCK_EX)",
    "lock of a range": "fcntl.lockf(source, fcntl.LOCK_SH)",
    "database": "sqlite3.connect('made').execute('create table a(b)')",
    "inherited pipe": "os.write(written, b'x')",
    "inherited pipe, read": "os.read(inherited, 1)",
    "inherited file": "named.write('x'), named.flush()",
    "a copy of it": "os.dup(named.fileno())",
    "its offset": "named.seek(0)",
    "others' limits": "resource.prlimit(parent, resource.RLIMIT_NOFILE)",
    "others' memory": "open(f'/proc/{parent}/mem', 'r+b')",
    "all signals have handlers": "caught()",
}
RUN = """
for line in sys.argv[1:]:
    pid = os.fork()
    if pid == 0:
        try:
            guard.enter(log=os.fstat(2))
            exec(line)
        except BaseException as error:
            os.write(1, f"{type(error).__name__}: {error} ".encode())
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
assert (os.lseek(temporary, 0, os.SEEK_CUR), os.pread(temporary, 99, 0)) == (6, b"before")
assert os.lseek(source.fileno(), 0, os.SEEK_CUR) == os.stat(__file__).st_size
"""


def ends(rows: dict[str, str], directory: Path) -> dict[str, str]:
    """How a guarded process ends in which each row is executed."""
    script = directory / "script.py"
    script.write_text(PREPARED + RUN)
    (directory / "log").touch()
    (directory / "named").touch()
    run = subprocess.run([sys.executable, str(script), *rows.values()], cwd=directory, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert {path.name for path in directory.iterdir()} == {"script.py", "log", "named"}
    assert (directory / "log").read_text() == (directory / "named").read_text() == ""
    return dict(zip(rows, run.stdout.splitlines(), strict=True))


def test_what_changes_nothing_goes_as_without_a_guard(tmp_path: Path) -> None:
    assert ends(ALLOWED, tmp_path) == dict.fromkeys(ALLOWED, "0")


def test_a_lasting_effect_ends_the_process_before_it_happens(tmp_path: Path) -> None:
    assert ends(ENDED, tmp_path) == dict.fromkeys(ENDED, str(-signal.SIGSYS))


def test_memory_that_is_shared_is_known() -> None:
    before = guard.shared_memory()
    with mmap.mmap(-1, 4096), mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE), open(__file__, "rb") as file:
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
            assert len(guard.shared_memory() - before) == 1


@pytest.mark.parametrize(("machine", "kernel"), [("x86_64", "asm/unistd_64.h"), ("aarch64", "asm-generic/unistd.h")])
def test_the_numbers_are_those_of_the_kernel(machine: str, kernel: str) -> None:
    headers = [Path("/usr/include", folder, kernel) for folder in ("", f"{os.uname().machine}-linux-gnu")]
    header = next((path for path in headers if path.is_file()), None)
    if header is None:
        pytest.skip("no headers of the kernel are installed")
    names = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    numbers = {{"fstatat": "newfstatat"}.get(name, name): int(number) for name, number in names}
    known = guard.numbers(machine)
    assert len(known) > 130
    assert {name: number for name, number in known.items() if numbers.get(name, number) != number} == {}
    assert known.keys() - numbers.keys() <= {"mseal"}  # younger than the headers


def test_a_machine_without_a_filter_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(machine="riscv64"))
    assert guard.why_not() == "there is no filter of system calls for riscv64"


def test_a_kernel_that_refuses_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(program: bytes) -> None:
        raise OSError(1, "prctl: Operation not permitted")

    monkeypatch.setattr("msp_bridge.isolation.kernel.filter_calls", refuse)
    assert guard.why_not() == "[Errno 1] prctl: Operation not permitted"
    monkeypatch.setattr("msp_bridge.isolation.kernel.filter_calls", lambda program: None)
    assert guard.why_not() == "the kernel does not end a process that opens a file to write"
