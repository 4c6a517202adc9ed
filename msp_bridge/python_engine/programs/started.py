"""In a Python process that a test has started: note what it runs of the project, and tell it at the end.

Theory of operation
-------------------
`started_processes` has the process find this file as its `sitecustomize`, which Python imports before any code of a
project. Tests see neither: the environment and `sys.path` are what they would be without it, another `sitecustomize`
takes its place, and it imports nothing that a test could miss or find.

Noted are functions, by file and qualified name, as `dependencies` does it; Python files that are read as text,
directories that are listed, programs that are started; and whether anything may have run unseen (`hidden`).

Python that this process starts in turn tells the same (`Starts`), in a file of its own.

It is told at the end of the process, after all else that it does then. A process that is killed, ends at once
(`os._exit`) or becomes another program tells nothing.
"""

import marshal
import os
import sys
from io import FileIO

TYPE_CHECKING = False  # a test may ask whether `typing` is loaded
if TYPE_CHECKING:
    import types
    from collections.abc import Callable, Sequence
    from typing import Any

    from .messages import Told

VARIABLE = "MSP_BRIDGE_STARTED"  # what the starting process says (`messages.Told`)
PATH = b"PYTHONPATH="
SHEBANG = 256  # bytes, which is what the kernel reads of it
UNTOLD = set("EIS")  # options of Python with which it does not look for us
monitoring: "Any" = getattr(sys, "monitoring", None)  # from Python 3.12
CodeType = type((lambda: None).__code__)


class Starts:
    """Programs that this process starts with `subprocess`: each Python among them is to tell what it runs."""

    def __init__(self, told: "Told", other: "Callable[[str, list[str]], object]", system: "Any" = os) -> None:
        """`told`: the same for all, but for what is added to the name of its `file`. `system`: the module `os`.

        `other` gets the directory of each other program, and its name and arguments; none of these if they are unknown.
        """
        self._told, self._other, self._os = told, other, system
        self._number = 0  # where threads take the same one, the file has the pid of one process only
        self._fork_exec: Any = None
        self.began: list[tuple[str, int]] = []  # files, and pids

    def see(self, frame: "types.FrameType | None") -> bool:
        """Whether we see the start that an audit event has announced; `frame` is above it on the stack."""
        while frame is not None and frame.f_code.co_name != "_execute_child":
            frame = frame.f_back
        names = {} if frame is None else frame.f_globals
        if isinstance(names.get("_fork_exec"), type(len)):  # which is called next, and which no test has replaced
            self._fork_exec, names["_fork_exec"] = names["_fork_exec"], self._start
            names["_USE_POSIX_SPAWN"] = False  # else it may not be called: Python's documentation has this
        return bool(names.get("_fork_exec") == self._start)

    def _start(
        self,
        words: "Sequence[Any]",
        programs: "Sequence[bytes]",
        close: bool,
        kept: "tuple[int, ...]",
        directory: "Any",
        variables: "Sequence[bytes] | None",
        *others: "Any",
    ) -> int:
        file = None
        try:
            if file := self._file_for(list(map(os.fsdecode, words)), programs, os.fsdecode(directory or os.curdir)):
                variables = self._variables(file, variables)
        except Exception:  # as in `Noted`
            self._other("", [])
        pid: int = self._fork_exec(words, programs, close, kept, directory, variables, *others)
        if file:
            self.began.append((file, pid))
        return pid

    def _file_for(self, words: "list[str]", programs: "Sequence[bytes]", directory: str) -> "str | None":
        """The file in which a program is to tell what it runs; None: it is none that does. `programs`: its names."""
        paths = self._os.path
        if not paths.isdir(directory):  # it fails
            return None
        names = (paths.join(paths.abspath(directory), os.fsdecode(each)) for each in programs)
        found = [each for each in names if self._os.access(each, os.X_OK) and paths.isfile(each)][:1]
        if not found or not self._is_python(found[0], words[1:]):
            self._other(paths.abspath(directory), [*found, *words])
            return None
        self._number += 1
        return f"{self._told['file']}.{self._number}"

    def _is_python(self, program: str, options: "list[str]") -> bool:
        """Whether it is the interpreter of the tests, which will look for us, or a script that names it."""
        real, python = self._os.path.realpath, self._told["python"]
        if real(program) == python:
            return _is_customized(options)
        try:
            with FileIO(program) as file:
                words = shebang(file)
        except OSError:
            return False
        return len(words) == 1 and bool(real(words[0]) == python)

    def _variables(self, file: str, variables: "Sequence[bytes] | None") -> "list[bytes]":
        given = [b"%b=%b" % each for each in self._os.environb.items()] if variables is None else list(variables)
        old = next((each for each in given if each.startswith(PATH)), None)
        pythonpath = None if old is None else os.fsdecode(old[len(PATH) :])
        told: Any = {**self._told, "file": file, "pythonpath": pythonpath}
        new = PATH + os.fsencode(os.pathsep.join(filter(None, [self._os.path.dirname(file), pythonpath])))
        ours = [*([new] if old is None else []), os.fsencode(f"{VARIABLE}={marshal.dumps(told).hex()}")]
        return [new if each is old else each for each in given] + ours


def shebang(file: FileIO) -> "list[str]":
    """The interpreter of a script and its argument; of another file there is none."""
    line = file.read(SHEBANG).partition(b"\n")[0]
    return os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []


def _is_customized(options: "list[str]") -> bool:
    """Whether Python imports a `sitecustomize` of PYTHONPATH."""
    for each in options:
        if each[:1] != "-" or each[1:2] in "cm-":
            return True
        if not UNTOLD.isdisjoint(each):
            return False
    return True


class Noted:
    """Notes what this process runs from now on, in all threads."""

    def __init__(self, told: "Told") -> None:
        self._told = told
        self._real: dict[str, str | None] = {}
        self.functions: set[tuple[str, str]] = set()
        self.codes: list[tuple[str, types.CodeType]] = []  # before Python 3.12: files, and what of them may have run
        self.texts: set[str] = set()
        self.others: list[tuple[str, list[str]]] = []  # programs: see `Starts`
        self.starts = Starts(told, lambda *other: self.others.append(other))
        self.hidden = any(map(self._ours, [str(getattr(each, "__file__", "")) for each in list(sys.modules.values())]))

    def begin(self) -> None:
        """Note it."""
        if monitoring is not None:
            monitoring.use_tool_id(self._told["tool"], "msp-bridge")
            monitoring.register_callback(self._told["tool"], monitoring.events.PY_START, self._ran)
            monitoring.set_events(self._told["tool"], monitoring.events.PY_START)
        os.register_at_fork(before=self._hide)
        sys.addaudithook(self._audit)

    def _hide(self) -> None:
        self.hidden = True

    def _ours(self, filename: str) -> str | None:
        """The real name of a file or directory of the project; None: it is none."""
        if filename not in self._real:
            real = os.path.realpath(filename) + os.sep * filename.endswith(os.sep)
            own = filename[:1] not in ("", "<") and "site-packages" not in real and real.startswith(self._told["roots"])
            self._real[filename] = real if own else None
        return self._real[filename]

    def _ran(self, code: "types.CodeType", _offset: int) -> object:
        if (file := self._ours(code.co_filename)) is not None:
            self.functions.add((file, code.co_qualname))
        return monitoring.DISABLE

    def _audit(self, event: str, arguments: "tuple[Any, ...]") -> None:
        try:
            self._note(event, arguments)
        except Exception:  # there is no working directory any more, or a test has replaced what is called here
            self.hidden = True

    def _note(self, event: str, arguments: "tuple[Any, ...]") -> None:
        if event in self._told["code"]:
            code = arguments[-1]
            if isinstance(code, CodeType) and (file := self._ours(code.co_filename)) is not None:
                self.codes.append((file, code))
        elif event == "open":
            self._opened(*arguments[:2])
        elif event in self._told["lists"]:
            self._listed(os.curdir if arguments[0] is None else arguments[0])
        elif event == "subprocess.Popen":
            self.hidden |= not self.starts.see(sys._getframe(2))
        elif event in self._told["hiding"] or (
            event == "import" and any(map(arguments[0].count, self._told["modules"]))
        ):
            self.hidden = True

    def _opened(self, file: object, mode: object) -> None:
        if isinstance(file, (str, bytes, os.PathLike)) and (name := os.fsdecode(file)).endswith(".py"):
            if mode is None and not os.path.isabs(name):  # by `os.open`, perhaps relative to another directory
                self.hidden = True
            elif _imports() != "get_data":
                self._read(os.path.abspath(name))

    def _listed(self, directory: object) -> None:
        if isinstance(directory, (str, bytes, os.PathLike)) and _imports() != "_fill_cache":
            self._read(os.path.join(os.path.abspath(os.fsdecode(directory)), ""))

    def _read(self, filename: str) -> None:
        if (real := self._ours(filename)) is not None:
            self.texts.add(real)


def _imports() -> str:
    """The function of the import system that has raised the event which is audited; `""`: something else has."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    ours = frame is not None and "importlib" in frame.f_code.co_filename
    if frame is None or not ours:
        return ""
    name, caller = frame.f_code.co_name, frame.f_back
    return name if name != "get_data" or (caller is not None and caller.f_code.co_name == "get_code") else ""


def _that_ran(codes: "list[tuple[str, types.CodeType]]", counter: tuple[int, int, int]) -> set[tuple[str, str]]:
    """Files and names of what has run. `counter`: its offset in a code object, its size, its value before any run."""
    import ctypes

    (offset, size, fresh), found = counter, set[tuple[str, str]]()
    for file, code in codes:
        codes += [(file, each) for each in code.co_consts if isinstance(each, CodeType)]  # they are looked at, too
        if int.from_bytes(ctypes.string_at(id(code) + offset, size), sys.byteorder, signed=True) != fresh:
            found.add((file, code.co_qualname))
    return found


def begin(told: "Told") -> None:
    """Note what runs from now on. At the end it goes to the file that the starting process has named."""
    noted = Noted(told)

    def tell() -> None:
        counter = told["counter"]
        functions = set(noted.functions) if counter is None else _that_ran(noted.codes, counter)
        try:
            with open(f"{told['file']}.new", "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(repr((os.getpid(), functions, noted.texts, noted.others, noted.starts.began, noted.hidden)))
            os.replace(f"{told['file']}.new", told["file"])
        except OSError:  # the test has ended, or the disk is full: nothing is told
            return

    is_loaded = "atexit" in sys.modules
    __import__("atexit").register(tell)
    if not is_loaded:
        del sys.modules["atexit"]
    noted.begin()


def main() -> None:
    """Begin, and be nowhere to be seen. Where there is no other `sitecustomize`, raises ImportError, as without us."""
    told: Told = marshal.loads(bytes.fromhex(os.environ.pop(VARIABLE)))  # noqa: S302 # the bridge has said it
    if told["pythonpath"] is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = told["pythonpath"]
    sys.path.remove(os.path.dirname(__file__))
    begin(told)
    del sys.modules["sitecustomize"]
    __import__("sitecustomize")


if __name__ == "sitecustomize":
    main()
