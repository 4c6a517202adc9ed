"""Line coverage: probes in live functions and sys.monitoring note the same lines, and change nothing."""

import gc
import sys
import types
from collections.abc import Iterator

import pytest

from msp_bridge.python_engine.programs.imports import ImportTrace, monitoring
from msp_bridge.python_engine.programs.late_imports import Lines
from msp_bridge.python_engine.programs.line_coverage import Monitoring, ProbedFile, ProbedFiles, Probes
from msp_bridge.python_engine.programs.live_code import LiveFunctions, Segment, all_nested, key

FILE = "/line_coverage_under_test.py"
MODULE = '''
def branch(a):
    """Doc."""
    if a:
        return [b for b in range(3)]
    try:
        raise KeyError(a)
    except KeyError:
        with_lambda = lambda text: (
            text + "!")
        return with_lambda("x")

def outer():
    value = 1
    def inner():
        nonlocal value
        value += 1
        return value
    return inner

def local():
    class Local:
        """Doc."""
        size = 4
    return Local

class Thing:
    @property
    def kind(self):
        match self:
            case Thing():
                return "thing"

def generate():
    for n in range(2):
        yield n

async def wait():
    return 3

def short(a): return a + 10

twice = lambda a: a * 20
'''


@pytest.fixture(autouse=True)
def traced_as_before() -> Iterator[None]:
    """What traces this process, as a measurement of its coverage, goes on after a test that ends a trace."""
    tracer = sys.gettrace()
    yield
    sys.settrace(tracer)


@pytest.fixture
def module() -> Iterator[types.ModuleType]:
    """MODULE, imported."""
    gc.collect()  # the functions of earlier tests, which have been called
    made = types.ModuleType("line_coverage_under_test")
    made.__file__ = FILE
    sys.modules[made.__name__] = made
    exec(compile(MODULE, FILE, "exec", dont_inherit=True), made.__dict__)
    yield made
    del sys.modules[made.__name__]


def lines(text: str, *more: str) -> set[int]:
    """The numbers of the lines that hold these texts, once each."""
    return {next(n for n, line in enumerate(MODULE.split("\n"), 1) if part in line) for part in (text, *more)}


def probes_of(functions: LiveFunctions) -> Probes:
    """Those of MODULE, which is not on the disk."""
    probed = ProbedFiles()
    probed._files[FILE] = ProbedFile.of(FILE, MODULE)
    return Probes(functions, [FILE], probed)


@pytest.fixture(params=["probes", "monitoring"])
def noted(request: pytest.FixtureRequest, module: types.ModuleType) -> Iterator[Lines]:
    """Either way of noting lines, on the functions of the module."""
    functions = LiveFunctions(frozenset([FILE]))
    if request.param == "probes":
        probes = probes_of(functions)
        probes.begin()
        yield probes
        return
    if monitoring is None:
        pytest.skip("sys.monitoring is there from Python 3.12 on")
    events = Monitoring(functions, [FILE])
    events.begin()
    yield events
    monitoring.set_events(4, 0)
    monitoring.free_tool_id(4)


def test_the_lines_that_run_are_noted(module, noted):
    assert module.branch(True) == [0, 1, 2]
    hit = {line for _, line in noted.hits}
    assert hit >= lines("if a:", "return [b")
    assert not hit & lines("raise KeyError", "with_lambda(")


def test_lambdas_closures_local_classes_properties_generators_and_functions_of_one_line_are_seen(module, noted):
    assert module.branch(False) == "x!"
    assert module.outer()() == 2
    assert module.Thing().kind == "thing"
    assert list(module.generate()) == [0, 1]
    assert (module.short(1), module.twice(1)) == (11, 20)
    assert (module.local().size, module.local().__doc__) == (4, "Doc.")
    hit = {line for _, line in noted.hits}
    assert hit >= lines('text + "!"', "value += 1", 'return "thing"', "yield n", "a + 10", "a * 20", "size = 4")


def test_each_test_has_its_own_lines(module, noted):
    module.branch(True)
    noted.hits.clear()
    noted.again()
    module.branch(True)
    first = set(noted.hits)
    noted.hits.clear()
    noted.again()
    module.outer()()
    assert {line for _, line in first} >= lines("if a:")
    assert not noted.hits & first


def test_what_is_imported_late_has_its_local_classes_noted(noted):
    namespace = {}
    exec(noted.noting(compile(MODULE, FILE, "exec", dont_inherit=True), MODULE), namespace)
    noted.hits.clear()
    assert namespace["local"]().size == 4
    assert {line for _, line in noted.hits} >= lines("class Local", "size = 4")


def test_code_that_is_not_what_the_text_compiles_to_gets_no_probes(module):
    """A loader has compiled it in its own way."""
    code = compile(MODULE.replace("size = 4", "size = 5"), FILE, "exec", dont_inherit=True)
    with pytest.raises(ValueError, match="a loader"):
        probes_of(LiveFunctions(frozenset([FILE]))).noting(code, MODULE)


def test_a_copy_of_its_code_that_a_function_gets_is_noted(module, noted):
    copy = module.short.__code__.replace(co_name="copied")
    assert noted.notes(copy)
    assert types.FunctionType(copy, {})(1) == 11
    assert {line for _, line in noted.hits} >= lines("a + 10")


def test_code_that_is_no_copy_is_noted_or_told_to_be_hidden(module, noted):
    codes = all_nested(compile(MODULE, FILE, "exec", dont_inherit=True))
    anew = next(code for code in codes if code.co_name == "short")
    is_noted = noted.notes(anew)
    assert types.FunctionType(anew, {})(1) == 11
    assert is_noted == bool({line for _, line in noted.hits} & lines("a + 10"))


def test_a_mutant_can_be_put_into_functions_the_lines_of_which_are_to_be_noted(module):
    """Nothing but a function may hold its code: else each mutant would have a fresh process."""
    functions = LiveFunctions(frozenset([FILE]))
    kept = probes_of(functions) if monitoring is None else Monitoring(functions, [FILE])
    for old, new in (("a + 10", "a + 11"), ("value += 1", "value += 2"), ('"thing"', '"nothing"')):
        assert functions.swap(*Segment.of_file(FILE, MODULE, MODULE.replace(old, new)).compiled()) > 0
    assert (module.short(1), module.outer()(), module.Thing().kind, kept.hits) == (12, 3, "nothing", set())


def test_probes_leave_names_docstrings_and_signatures_alone(module):
    before = (set(vars(module)), module.branch.__doc__, module.branch.__code__.co_varnames)
    probes_of(LiveFunctions(frozenset([FILE]))).begin()
    assert (set(vars(module)), module.branch.__doc__, module.branch.__code__.co_varnames) == before


GONE = """import threading

def gone(): pass
def in_thread(): pass
def never(): pass

gone()
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
del gone, never
"""


def test_calls_in_threads_and_of_functions_that_are_gone_are_noted():
    trace = ImportTrace(frozenset([FILE]))
    trace.start()
    try:
        exec(compile(GONE, FILE, "exec", dont_inherit=True), {})
    finally:
        trace.stop(LiveFunctions(frozenset()))
    assert {name for name, _ in trace.called(FILE)} == {"<module>", "gone", "in_thread"}


def test_an_import_that_has_python_call_what_is_not_noted_is_told():
    trace = ImportTrace(frozenset())
    trace.start()
    sys.setprofile(None)
    trace.stop(LiveFunctions(frozenset()))
    assert ("profiles" in (trace.why_fresh() or "")) == (monitoring is not None)


def test_calls_before_the_fork_are_noted(module):
    trace = ImportTrace(frozenset([FILE]))
    trace.start()
    try:
        module.branch(True)
        module.Thing().kind  # noqa: B018  (a property, which is called)
    finally:
        trace.stop(LiveFunctions(frozenset([FILE])))
    module.outer()
    called = trace.called(FILE)
    assert key(module.branch.__code__) in called
    assert any(name.endswith("kind") for name, _ in called)
    assert key(module.outer.__code__) not in called
