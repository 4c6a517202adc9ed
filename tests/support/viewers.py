"""Small reports to show."""

import json
from pathlib import Path
from typing import Any

from msp_bridge.model import Location, Mutant, Position, Result, Status
from msp_bridge.reports import standard

SCHEMA_FILE = Path(standard.__file__).with_name(standard.SCHEMA)
SCHEMA = json.loads(SCHEMA_FILE.read_bytes())


def mutant(path: str = "shop.py", line: int = 1, replacement: str = "-", mutator: str = "plus") -> Mutant:
    return Mutant(path, mutator, Location(Position(line, 7), Position(line, 8)), replacement)


def reported(root: Path, *results: Result, source: str = "a = b + c\n", **config: Any) -> dict[str, Any]:
    """A report on files that all have the same text."""
    for result in results:
        (root / result.mutant.path).parent.mkdir(parents=True, exist_ok=True)
        (root / result.mutant.path).write_bytes(source.encode())
    made: dict[str, Any] = json.loads(json.dumps(standard.report(root, results, config)))
    return made


def survived(*of: Any, **fields: Any) -> Result:
    return Result(mutant(*of), Status.SURVIVED, **fields)


def killed(*of: Any, **fields: Any) -> Result:
    return Result(mutant(*of), Status.KILLED, **fields)
