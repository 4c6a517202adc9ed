"""`python -m benchmarks [NAME]…`: one table for each benchmark."""

from __future__ import annotations

import importlib
import json
import os
import platform
from pathlib import Path

import click
from rich.console import Console

from benchmarks.client import ServerFailed
from benchmarks.laboratory import PROJECTS, Laboratory, SetUpFailed
from benchmarks.measuring import as_json, show

BENCHMARKS = {
    "start": "Start of the process to the answer of `configure`",
    "faces": "The Language Server Protocol beside MSP",
    "messages": "Results through the front end",
    "memory": "Memory of the server",
    "json_backends": "JSON back ends of cattrs",
    "discovery": "Discovery",
    "again": "One mutant again, on a warm server",
    "engine": "The Python engine, as an editor meets it",
    "large_tree": "A project in a large tree",
    "whole": "A whole run",
    "incremental": "A whole run that reuses verdicts",
    "cluster": "A Dask cluster beside the local pool, and simulated workers",
    "peers": "mutmut, irradiate and pytest-gremlins beside the bridge",
    "cosmic_ray": "A whole run, with cosmic-ray",
    "stryker_js": "StrykerJS's own server, alone and through the bridge",
    "stryker_net": "Stryker.NET, alone and through the bridge",
    "gremlins": "gremlins, alone and through the bridge",
    "cargo_mutants": "cargo-mutants, alone and through the bridge",
    "pit": "PIT, alone and through the bridge",
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[NAME]…")
@click.option("--rounds", type=click.IntRange(1), help="How often each is repeated.  [default: as each benchmark says]")
@click.option("--project", type=click.Choice(list(PROJECTS)), default="inflection", show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path), metavar="FILE", help="Write the figures there, too.")
def main(names: tuple[str, ...], rounds: int | None, project: str, file: Path | None) -> None:
    """Measure the bridge beside other things; without names, all of them.

    What can't be measured here says why, and the others go on; the exit code is then 1.
    """
    for name in names:
        if name not in BENCHMARKS:
            raise click.BadParameter(f"there is no benchmark {name!r}; choose from {', '.join(BENCHMARKS)}")
    console = Console(highlight=False, width=None if os.isatty(1) else 150)
    console.print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores, {project}")
    console.print("median (lowest\N{EN DASH}highest); ratios are of pairs measured one after the other\n")
    laboratory = Laboratory()
    failed = []
    figures: dict[str, list[dict[str, object]]] = {}
    for name in names or BENCHMARKS:
        try:
            benchmark = importlib.import_module(f"benchmarks.{name}")
            comparisons = benchmark.measure(laboratory, PROJECTS[project], rounds)
        except (SetUpFailed, ServerFailed) as error:
            console.print(f"{name}: {error}\n", markup=False)
            failed.append(name)
        else:
            comparisons = list(comparisons)
            figures[name] = [as_json(comparison) for comparison in comparisons]
            show(console, f"{name}: {BENCHMARKS[name]}", comparisons)
    if file is not None:
        file.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    if failed:
        raise click.ClickException(f"could not be measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
