"""Which tests come first as long as nobody knows what they run."""

import pytest

from msp_bridge.python_engine.programs.likely_tests import LikelyTests

GRAPH = """from pkg import graph


class TestGraph:
    def test_clear(self):
        graph.Graph().clear()

    def test_remove(self):
        graph.Graph().remove(1)
"""
TEXTS = {
    "tests/test_views.py": "from pkg.graph import Graph\n\n\ndef test_view():\n    assert Graph().view\n",
    "tests/test_graph.py": GRAPH,
    "tests/test_other.py": "def test_other():\n    assert True\n",
    "tests/test_user.py": "def test_user(graph):\n    graph.remove(1)\n",
}
TESTS = [
    "tests/test_views.py::test_view",
    "tests/test_graph.py::TestGraph::test_clear",
    "tests/test_graph.py::TestGraph::test_remove[1]",
    "tests/test_other.py::test_other",
    "tests/test_user.py::test_user",
]


@pytest.mark.parametrize(
    ("function", "order"),
    [
        ("Graph.remove", [2, 4, 1, 0]),  # names it, in its own file; names it; of the same file; names the module
        ("Graph.clear", [1, 2, 0, 4]),
        ("Graph.__init__", [1, 2, 0, 4]),  # nobody calls that by name: the class
        ("", [1, 2, 4, 0]),  # of no function: the module
    ],
)
def test_the_order(function: str, order: list[int]) -> None:
    assert LikelyTests(TESTS, TEXTS).of("pkg/graph.py", function) == order


def test_the_rows_of_one_test_leave_room_for_other_tests() -> None:
    rows = [f"tests/test_graph.py::TestGraph::test_remove[{number}]" for number in range(40)]
    assert LikelyTests([*rows, *TESTS[:2]], TEXTS).of("pkg/graph.py", "Graph.remove")[:17] == [*range(16), 41]
