"""In a Python process that a test has started: note what it runs of the project, and tell it at the end.

Theory of operation
-------------------
`started_processes` has the process find this file as its `sitecustomize`, which Python imports before any code of a
project. Tests see neither: the environment and `sys.path` are what they would be without it, another `sitecustomize`
takes its place, and it imports nothing that a test could miss or find.

Noted are functions, by file and qualified name, as `dependencies` does it; Python files that are read as text,
directories that are listed, programs that are started; and whether anything may have run unseen (`hidden`).

It is told at the end of the process, after all else that it does then. A process that is killed, ends at once
(`os._exit`) or becomes another program tells nothing.
"""

import marshal
import os
import sys

TYPE_CHECKING = False  # a test may ask whether `typing` is loaded
if TYPE_CHECKING:
    import types
    from typing import Any

    from .messages import Told

VARIABLE = "MSP_BRIDGE_STARTED"  # what the starting process says (`messages.Told`)
monitoring: "Any" = getattr(sys, "monitoring", None)  # from Python 3.12
CodeType = type((lambda: None).__code__)


class Noted:
    """Notes what this process runs from now on, in all threads."""

    def __init__(self, told: "Told") -> None:
        self._told = told
        self._real: dict[str, str | None] = {}
        self.functions: set[tuple[str, str]] = set()
        self.codes: list[tuple[str, types.CodeType]] = []  # before Python 3.12: files, and what of them may have run
        self.texts: set[str] = set()
        self.starts: list[tuple[Any, ...]] = []
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
            executable, words, directory, _ = arguments
            words = [words] if isinstance(words, (str, bytes, os.PathLike)) else words
            self.starts.append((*map(os.fsdecode, (os.path.abspath(directory or os.curdir), executable, *words)),))
        elif event in self._told["hiding"] or (event == "import" and arguments[0].startswith(self._told["modules"])):
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
                file.write(repr((os.getpid(), functions, noted.texts, noted.starts, noted.hidden)))
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
    os.environ.pop("PYTHONPATH")
    if told["pythonpath"] is not None:
        os.environ["PYTHONPATH"] = told["pythonpath"]
    sys.path.remove(os.path.dirname(__file__))
    begin(told)
    del sys.modules["sitecustomize"]
    __import__("sitecustomize")


if __name__ == "sitecustomize":
    main()
