"""Generation: the mutated files in the private copy, made anew only where a source has changed."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from .mutations import Mutations


@dataclass(frozen=True)
class Generated:
    """One file, with these mutants, or unmutated because of a problem."""

    key: str  # names mutmut, Python and the configuration
    digest: str  # names the source's content; empty while the file is being made
    handles: frozenset[str]
    problem: str | None = None

    @property
    def made_of(self) -> tuple[str, str]:
        """Whatever decides what the file is."""
        return self.key, self.digest


@dataclass
class Generation:
    """The files in the current directory, which is the copy, that were generated from those below `root`."""

    root: Path
    record: Path
    files: dict[str, Generated] = field(default_factory=dict)

    def load(self) -> None:
        """What an earlier process has made; nothing when its record is damaged: all files are then made anew."""
        try:
            rows = json.loads(self.record.read_bytes())
            self.files = {path: Generated(row[0], row[1], frozenset(row[2]), row[3]) for path, row in rows.items()}
        except (OSError, ValueError, TypeError, AttributeError, IndexError, KeyError):
            return

    def update(self, wanted: list[str], settings: str, jobs: int) -> None:
        """Make exactly the `wanted` files mutated. `settings` names all else that decides what mutmut makes of them."""
        key = digest_of(repr((version("mutmut"), version("libcst"), sys.version, settings)).encode())
        sources = {path: data for path in wanted if (data := _bytes(self.root / path)) is not None}
        for path in self.files.keys() - sources.keys():
            self._restore(path)
        before = self.files
        digests = {path: digest_of(data) for path, data in sources.items()}
        current = {path for path in before if path in sources and before[path].made_of == (key, digests[path])}
        todo = {path: data for path, data in sources.items() if path not in current or not Path(path).is_file()}
        if not todo and before.keys() == sources.keys():
            return
        self.files = {path: Generated("", "", frozenset()) if path in todo else before[path] for path in sources}
        self._save()  # should this process be killed now, the next one knows that these files aren't the user's
        for path, made in _parallel(todo, jobs).items():
            self.files[path] = Generated(key, digests[path], frozenset(made["handles"]), made["problem"])
        self._save()

    def _restore(self, path: str) -> None:
        """The file as it is in the source, or not at all."""
        data = _bytes(self.root / path)
        if data is not None:
            _write(path, data)
        else:
            Path(path).unlink(missing_ok=True)

    def _save(self) -> None:
        rows = {path: (made.key, made.digest, sorted(made.handles), made.problem) for path, made in self.files.items()}
        save(self.record, rows)


def save(file: Path, value: object) -> None:
    """Write it, whole or not at all."""
    if file.is_dir():  # somebody has been at the cache
        shutil.rmtree(file)
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(value), encoding="utf-8")
    os.replace(fresh, file)


def digest_of(data: bytes) -> str:
    """Names a file's content, in the same way as the bridge does."""
    return blake2b(data, digest_size=16).hexdigest()


def forget_bytecode(path: str) -> None:
    """Delete what was compiled from `path`: Python compares sizes and whole seconds only, and both may be equal."""
    compiled = Path(cache_from_source(os.path.abspath(path)))
    for file in compiled.parent.glob(f"{compiled.name.split('.')[0]}.*.pyc"):
        file.unlink(missing_ok=True)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:  # gone since it was listed, or unreadable: nothing to mutate
        return None


def _write(path: str, data: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(data)
    forget_bytecode(path)


def _parallel(sources: Mapping[str, bytes], jobs: int) -> dict[str, dict[str, Any]]:
    """Generate in forked processes: they keep this one small, and a file that crashes libcst takes no other with it."""
    largest_first = sorted(sources, key=lambda path: -len(sources[path]))
    shares = [share for start in range(jobs) if (share := largest_first[start::jobs])]
    children = [_fork(share, sources) for share in shares]
    made: dict[str, dict[str, Any]] = {}
    for pid, reader in children:
        with open(reader, encoding="utf-8") as lines:
            made.update(json.loads(line) for line in lines)
        os.waitpid(pid, 0)
    for path in sources.keys() - made.keys():
        _write(path, sources[path])
        made[path] = {"handles": [], "problem": "mutmut crashed on this file"}
    return made


def _fork(share: list[str], sources: Mapping[str, bytes]) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            with open(writer, "w", encoding="utf-8") as answers:
                for path in share:
                    answers.write(json.dumps((path, _generate(path, sources[path]))) + "\n")
                    answers.flush()
        finally:
            os._exit(0)
    os.close(writer)
    return pid, reader


def _generate(path: str, data: bytes) -> dict[str, Any]:
    try:
        code = re.sub("\r\n?", "\n", data.decode("utf-8-sig"))
        mutations = Mutations(path, code)
        generated = mutations.generate().code
        ast.parse(generated)
        handles = [change.handle for change in mutations.changes()]
    except Exception as error:  # whatever mutmut and libcst raise: this file stays as it is, the others don't suffer
        _write(path, data)
        return {"handles": [], "problem": f"{type(error).__name__}: {error}"}
    _write(path, generated.encode("utf-8"))
    return {"handles": handles, "problem": None}
