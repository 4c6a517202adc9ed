"""`msp-bridge apply`: writes a mutant into the user's file, to debug it, and takes it back.

It is the only command that writes into a source file: `accept` and `init` write files of their own. The text before is
kept in the private cache until it is taken back; a file that has changed since is never overwritten.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from msp_bridge import reading
from msp_bridge.cli.known import PROJECT_OPTIONS, known_results
from msp_bridge.cli.options import with_options
from msp_bridge.environment.cache import cache_of
from msp_bridge.errors import CommandLineError, ConfigurationError
from msp_bridge.last_results import KnownResults
from msp_bridge.source import BOM, SourceText
from msp_bridge.text import one_line
from msp_bridge.writing import replace_content, writing_to

UNDO = "`msp-bridge apply --undo` takes it back"


@click.command("apply")
@click.argument("mutant", required=False, metavar="[ID|FILE:LINE:COL]")
@click.option("--undo", is_flag=True, help="Take back the mutant that is applied.")
@with_options(PROJECT_OPTIONS)
def command(mutant: str | None, undo: bool, **values: Any) -> None:
    """Write a mutant of the last results into your file, to debug with it, and take it back with --undo.

    One mutant is applied at a time. A file that has changed since the mutant was found, or since it was applied, is
    left as it is.

    \b
    Exit codes; stderr has the reason:
      0    done
      2    there is no such mutant, or the file has changed since
    """
    if (mutant is None) != undo:
        raise CommandLineError("name a mutant, or --undo", "`msp-bridge results` lists them")
    known = known_results(values)
    applied = AppliedMutant.of(known.root)
    if mutant is None:
        if applied is None:
            raise CommandLineError("no mutant is applied")
        applied.take_back(known.root)
        click.echo(f"{one_line(applied.path)} is as it was")
    else:
        if applied is not None:
            raise CommandLineError(f"a mutant is applied in {applied.path}", UNDO)
        path = _apply(known, mutant)
        click.echo(f"applied to {one_line(path)}; {UNDO}")


@frozen
class AppliedMutant:
    """The mutant that is applied to the file `path`."""

    path: str
    before: str  # the text of the file
    after: str

    @classmethod
    def of(cls, root: Path) -> AppliedMutant | None:
        """The one that is applied in the project at `root`. Raises ConfigurationError when that can't be read."""
        try:
            return cls(**reading.json_value(_note(root)))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise ConfigurationError(
                f"can't read {_note(root)}: {error}", "restore your file, and remove this"
            ) from None

    def write(self, root: Path) -> None:
        """Write the mutant, when the text before is kept. Raises ConfigurationError."""
        _write(_note(root), json.dumps({"path": self.path, "before": self.before, "after": self.after}))
        _write(root / self.path, self.after)

    def take_back(self, root: Path) -> None:
        """Write the text before. Raises ConfigurationError when the file has changed since."""
        if _text(root / self.path) not in (self.before, self.after):
            raise ConfigurationError(
                f"{self.path} has changed since the mutant was applied", f"its text before is in {_note(root)}"
            )
        _write(root / self.path, self.before)
        _note(root).unlink()


def _apply(known: KnownResults, name: str) -> str:
    found = known.named([name])
    if len(found) > 1:
        raise CommandLineError(f"{name} names {len(found)} mutants", "name one by its id, as `msp-bridge show` has it")
    mutant = found[0].entry.result.mutant
    before = _text(known.root / mutant.path)
    source = SourceText(before.removeprefix(BOM))
    if source.text != found[0].found_in.text:
        raise ConfigurationError(f"{mutant.path} has changed since", "`msp-bridge run` tests its mutants again")
    mark = BOM if before.startswith(BOM) else ""
    AppliedMutant(mutant.path, before, mark + source.apply(mutant)).write(known.root)
    return mutant.path


def _note(root: Path) -> Path:
    return cache_of(root) / "applied.json"


def _text(file: Path) -> str:
    try:
        return reading.text(file)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"can't read {file}: {error}") from None


def _write(file: Path, text: str) -> None:
    """Write `file`. One that is there is written in place, so it keeps its permissions and its links."""
    with writing_to(file):
        if file.exists():
            file.write_bytes(text.encode())
        else:
            replace_content(file, text)
