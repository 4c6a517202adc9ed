"""The compose file and the Kubernetes example can be read, and call programs with options that these have."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parents[2]
EXAMPLES = HERE / "examples" / "cluster"


def commands(value: Any) -> Iterator[list[str]]:
    if isinstance(value, dict):
        if "command" in value:
            yield value["command"]
        for inner in value.values():
            yield from commands(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from commands(inner)


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text("utf-8")))


def options_of(program: list[str]) -> set[str]:
    if program[0] == "dask":
        from distributed.cli import dask_scheduler, dask_worker

        known = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}[program[1]]
        return {option for parameter in known.params for option in (*parameter.opts, *parameter.secondary_opts)}
    from msp_bridge.cli.run import run

    assert program[:2] == ["msp-bridge", "run"]
    return {option for parameter in run.params for option in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.parametrize(("name", "count"), [("compose.yaml", 3), ("kubernetes.yaml", 2)])
def test_each_command_of_the_examples_has_only_options_that_there_are(name: str, count: int) -> None:
    found = list(commands(documents(name)))
    assert len(found) == count
    for command in found:
        used = {word.partition("=")[0] for word in command if word.startswith("--")}
        assert used <= options_of(command), command


def test_every_object_for_kubernetes_has_a_kind_and_selects_what_there_is() -> None:
    objects = documents("kubernetes.yaml")
    assert all(one["apiVersion"] and one["kind"] and one["metadata"]["name"] for one in objects)
    labels = [one["spec"]["template"]["metadata"]["labels"] for one in objects if one["kind"] == "Deployment"]
    service = next(one for one in objects if one["kind"] == "Service")
    assert service["spec"]["selector"] in labels
