"""Mutants without namespaces: jobs with a guard run side by side, and say what jobs in worlds of their own say."""

from pathlib import Path

import pytest
from support import programs
from support.mutmut_trial import PACKAGE, Trial

from msp_bridge.model import Status
from msp_bridge.python_engine.programs.world import GUARD, World

SOURCE = b"""LEAVE = lambda: open("left", "w").close()

def writes(wanted):
    if wanted > 0:
        LEAVE()
    return 1

def answer(a):
    unseen = 1
    return a + 1, unseen

def text(a):
    return a - 1

def default(a, b=2):
    return a + b
"""
LATE = b"def late(a):\n    return a * 2\n"
TESTS = b"""import asyncio, importlib, inspect, os, signal, subprocess, sys, threading, time
from pathlib import Path
from pkg import m

def test_answer():
    time.sleep(0.05)
    assert not os.path.exists("left")
    assert m.answer(1)[0] == 2
    assert not os.path.exists("left")

def test_lines():
    assert "return a - 1" in inspect.getsource(m.text)

def test_text():
    assert m.text(1) in (0, 2)
    assert "return a - 1" in Path(m.__file__).read_text()

def test_reload():
    assert importlib.reload(m).text(5) == 4

def test_default():
    assert m.default(1) == 3

def test_late():
    from pkg import late
    assert late.late(2) == 4
    print("printed")

def test_output(capfd):
    print("out")
    assert capfd.readouterr().out == "out\\n"

async def nothing():
    await asyncio.sleep(0)

def test_threads():
    asyncio.run(nothing())
    thread = threading.Thread(target=m.answer, args=[1])
    thread.start()
    thread.join()

def test_process(tmp_path):
    (tmp_path / "file").write_text("x")
    run = subprocess.run([sys.executable, "-c", "from pkg.m import answer; print(answer(2)[0])"], capture_output=True)
    assert run.stdout == b"3\\n"

def test_writes():
    assert m.writes(0) == 1
"""
FILES = {**PACKAGE, "pkg/m.py": SOURCE, "pkg/late.py": LATE, "tests/test_m.py": TESTS}

UNSEEN = ("pkg.m.x_answer__mutmut_1", "pkg.m.x_answer__mutmut_2")


@programs.needs_guard
async def test_no_mutant_sees_the_guard_nor_another_mutant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", GUARD)
    async with Trial.of(FILES, tmp_path) as trial:
        results = await trial.test()
    survived = {name for name, result in results.items() if result.status is Status.SURVIVED}
    assert survived == {"pkg.m.x_writes__mutmut_1", "pkg.m.x_writes__mutmut_2", *UNSEEN}, "the first writes a file"
    assert {result.status for name, result in results.items() if name not in survived} == {Status.KILLED}
    assert not (trial.copy / "left").exists()


IN_MEMORY = """
import importlib, inspect, io, linecache, os, runpy, sys
from pathlib import Path
from msp_bridge.isolation import guard
from msp_bridge.python_engine.programs import bytecode
from msp_bridge.python_engine.programs.file_edit import FileEdit, digest_of
from msp_bridge.python_engine.programs.process_starts import ConcernedStarts
from msp_bridge.python_engine.programs.started_processes import StartedProcesses
from msp_bridge.python_engine.programs.text_reads import TextReads
from msp_bridge.python_engine.programs.world import World

root = Path(sys.argv[1])
(root / "copy").mkdir()
file = root / "copy/subject.py"
file.write_bytes(b"def f():\\n    return 1\\n")
os.utime(file, (10**9, 10**9))
(root / "copy/other.py").touch()
os.utime(root / "copy/other.py", (4 * 10**9, 4 * 10**9))  # as saved just now: to keep its bytecode would end a job
(root / "link").symlink_to(file)
os.environ[bytecode.VARIABLE] = str(root / "bytecode")
bytecode.read_beside_sources()
sys.path.insert(0, str(root / "copy"))
os.chdir(root / "copy")
noted = []
reads = TextReads(str(root / "copy"), note=noted.append, hide=noted.clear)
import subject  # and its bytecode is there
world = World(str(root), str(root / "copy"), root / "layers", wanted={"guard"}, temporary=str(root))
edit = FileEdit("subject.py", digest_of(file.read_bytes()), 20, 21, "2")
for line in sys.argv[2:]:
    pid = os.fork()
    if pid == 0:
        try:
            world.put_guarded(edit, [], os.fstat(2))
            os._exit(eval(line))
        except BaseException as error:
            print(type(error), error, flush=True)
            os._exit(9)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print("ended" if code == guard.ENDED else code, flush=True)
"""
SEEN = {
    "subject.f()": "1",  # the code is as it was at the fork: `live_code` replaces it
    "importlib.reload(subject).f()": "2",
    "sys.modules.pop('subject') and importlib.import_module('subject').f()": "2",
    "runpy.run_module('subject')['f']()": "2",
    "'return 2' in inspect.getsource(subject)": "1",
    "'return 2' in linecache.getline(str(file), 2)": "1",
    "reads.begin() or importlib.import_module('other') and len(noted)": "0",
    "reads.begin() or len((root / 'copy/other.py').read_text()) + len(noted)": "1",
    "StartedProcesses(root / 'noted', ConcernedStarts([]), (), ()).begin() or len(os.listdir(root / 'copy'))": "2",
    "file.read_text()": "ended",
    "io.open('subject.py')": "ended",
    "os.open('subject.py', os.O_RDONLY)": "ended",
    "os.open('subject.py', os.O_RDONLY, dir_fd=os.open('.', os.O_RDONLY))": "ended",
    "(root / 'link').read_text()": "ended",
    "runpy.run_path('subject.py')['f']()": "ended",
    "linecache.clearcache() or linecache.getline(str(file), 2)": "ended",
}


@programs.needs_guard
def test_a_guarded_job_sees_the_mutated_file_or_ends(tmp_path: Path) -> None:
    assert dict(zip(SEEN, programs.printed(IN_MEMORY, str(tmp_path), *SEEN), strict=True)) == SEEN
    assert (tmp_path / "copy/subject.py").read_text() == "def f():\n    return 1\n"


def test_where_the_kernel_refuses_there_is_no_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(program: bytes) -> None:
        raise OSError("not in this container")

    for name in ("root", "sandbox"):
        (tmp_path / name).mkdir()
    root, sandbox = str(tmp_path / "root"), str(tmp_path / "sandbox")
    monkeypatch.setenv("HOME", str(tmp_path))  # it is another one in a world
    world = World(root, sandbox, tmp_path / "layers", wanted={GUARD}, temporary=str(tmp_path))
    monkeypatch.setattr("msp_bridge.isolation.kernel.filter_calls", refuse)
    assert (world.keeps_apart, world.guards) == (False, False)


@pytest.mark.parametrize("isolation", ["off", "guard"])
async def test_tests_that_need_the_users_home_directory_to_be_imported_find_it(
    isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "token").write_text("3")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", isolation)
    source = b"def number(text):\n    return int(text) + 1\n"
    tests = b"from pathlib import Path\nfrom pkg.m import number\n\nNUMBER = number((Path.home() / 'token').read_text())\n\n"
    files = {**PACKAGE, "pkg/m.py": source}
    files["tests/test_m.py"] = tests + b"\ndef test_number():\n    assert NUMBER > 3\n"
    async with Trial.of(files, tmp_path) as trial:
        statuses = [result.status for result in (await trial.test()).values()]
    assert statuses.count(Status.SURVIVED) == 1  # + 2
    assert len(set(statuses)) == 2
