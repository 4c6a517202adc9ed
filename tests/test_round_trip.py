"""A mutant from an answer, sent back by the client, selects that mutant and no other."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from test_model import mutants

from msp_bridge.dialects.msp import to_discover, to_test, wire_files
from msp_bridge.jsonrpc.messages import dump, parse
from msp_bridge.model import Mutant
from msp_bridge.rows import mutant_fields
from msp_bridge.workspace.selection import Selection

ROOT = Path("/nowhere")


def over_the_wire(found: list[Mutant]) -> Selection:
    """`mutationTest` with the `mutants` that `discover` answered, as it arrives."""
    answer = parse(dump(wire_files((mutant.path, mutant_fields(mutant)) for mutant in found)))
    return to_test({"mutants": answer["files"]})


@given(st.lists(mutants, max_size=5), mutants)
def test_mutants_that_were_discovered_select_themselves_and_no_others(found: list[Mutant], other: Mutant) -> None:
    selection = over_the_wire(found)
    assert all(selection.takes(mutant) for mutant in found)
    assert selection.takes(other) == (other in found)


@given(st.lists(mutants, max_size=5))
def test_the_wire_has_plain_json(found: list[Mutant]) -> None:
    answer = wire_files((mutant.path, mutant_fields(mutant)) for mutant in found)
    assert parse(dump(answer)) == parse(json.dumps(answer).encode())


@given(mutants, mutants)
def test_a_range_that_is_a_mutants_own_location_selects_it(mutant: Mutant, other: Mutant) -> None:
    location = mutant_fields(mutant)["location"]
    selection = to_discover({"files": [{"path": mutant.path, "range": location}]})
    assert selection.takes(mutant)
    inside = other.path == mutant.path and mutant.location.contains(other.location)
    assert selection.takes(other) == inside
