"""The fuzz target on generated input, in every run of the tests; `make fuzz` goes on from there."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.bytes_to_answers import answers_to
from support.msp_client import framed

finite = st.floats(allow_nan=False, allow_infinity=False)  # JSON has no others
ids = st.one_of(st.integers(0, 3), st.text(max_size=2), st.none(), finite)
paths = st.sampled_from(
    ["a.py", "b/", "b/c.py", "/", "..", "../a.py", "/nowhere/a.py", "a\0", "\ud800", "", "~", "C:\\x"]
)
numbers = st.one_of(st.integers(-1, 6), st.just(2**70), st.just(1.5), st.booleans())
positions = st.fixed_dictionaries({"line": numbers, "column": numbers})
ranges = st.fixed_dictionaries({"start": positions, "end": positions})
json_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), finite, st.text(max_size=5), paths),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
files = st.lists(st.fixed_dictionaries({"path": paths}, optional={"range": ranges | json_values}), max_size=3)
mutants = st.fixed_dictionaries(
    {"id": st.text(max_size=3), "location": ranges, "mutatorName": st.text(max_size=3)},
    optional={"replacement": st.text(max_size=3)},
)
params = st.one_of(
    json_values,
    st.fixed_dictionaries({"files": files}),
    st.fixed_dictionaries(
        {"mutants": st.dictionaries(paths, st.fixed_dictionaries({"mutants": st.lists(mutants, max_size=2)}))}
    ),
    st.fixed_dictionaries({"configFilePath": paths | json_values}),
    st.fixed_dictionaries({"id": ids}),
)
methods = st.sampled_from(
    ["configure", "discover", "mutationTest", "$/cancelRequest", "reportMutationTestProgress", "x"]
)
messages = st.fixed_dictionaries(
    {"jsonrpc": st.sampled_from(["2.0", "1.0", 2])},
    optional={"id": ids, "method": methods, "params": params, "result": json_values},
)
wire = st.lists(
    st.one_of(
        st.one_of(messages, json_values).map(lambda value: framed(json.dumps(value).encode())),
        messages.map(lambda value: framed(json.dumps(value).encode())[:-1]),
        st.sampled_from([b"NaN", b'{"jsonrpc":"2.0","id":1e999,"method":"x"}']).map(framed),
        st.binary(max_size=40),
    ),
    max_size=6,
).map(b"".join)


@given(wire)
@settings(max_examples=400, deadline=None)
def test_whatever_arrives_is_answered_in_order_and_the_server_ends(data: bytes) -> None:
    answers_to(data)


@given(
    st.lists(methods.filter(lambda method: method != "$/cancelRequest"), max_size=4),
    st.lists(params, min_size=4, max_size=4),
)
@settings(max_examples=200, deadline=None)
def test_each_request_is_answered_exactly_once(asked: list[str], with_params: list[Any]) -> None:
    calls = [
        {"jsonrpc": "2.0", "id": id, "method": method, "params": value}
        for id, (method, value) in enumerate(zip(asked, with_params, strict=False))
    ]
    answers = answers_to(b"".join(framed(json.dumps(call).encode()) for call in calls))
    answered = [answer["id"] for answer in answers if "id" in answer]
    assert sorted(answered) == list(range(len(calls)))
