"""Process namespaces: a job is a child of its server, and all that it starts ends with it."""

from support import programs

PRELUDE = """
import importlib.util, os, signal, sys, time
from msp_bridge.isolation.process_namespace import ProcessNamespace

reader_of_host, writer_of_host = os.pipe()
try:
    ProcessNamespace().end()
except OSError as error:
    print("refused:", error)
    sys.exit()


def job(work):
    namespace = ProcessNamespace()
    pid = namespace.fork()
    if pid == 0:
        namespace.close()
        work()
        os._exit(0)
    return namespace, pid


def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def printed(code: str) -> list[str]:
    """What a process of its own prints: it must have a single thread, and may get another parent."""
    return programs.printed(PRELUDE + code)


def test_what_has_strayed_from_a_job_ends_with_it() -> None:
    lines = printed("""
reader, writer = os.pipe()

def stray():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)  # with `writer` open
        os._exit(0)
    time.sleep(600)

namespace, pid = job(stray)
os.close(writer)
namespace.kill()
print(ended(pid))
namespace.end()
print(os.read(reader, 1))  # returns at once: nobody holds the other end
""")
    assert lines == ["-9", "b''"]


def test_a_namespace_is_cleared_of_what_a_job_has_left_and_serves_the_next_one() -> None:
    """Also of a process that forks, and ends, without end: no signal to one process would find it."""
    lines = printed("""
reader, writer = os.pipe()

def stray():
    if os.fork() == 0:
        os.setsid()
        while True:  # with `writer` open
            if os.fork():
                os._exit(0)

namespace, pid = job(stray)
os.close(writer)
print(ended(pid))
namespace.clear()
print(os.read(reader, 1))  # returns at once: nobody holds the other end
pid = namespace.fork()
if pid == 0:
    try:
        os.kill(-1, 0)
    except ProcessLookupError:
        os._exit(7)
    os._exit(0)
print(ended(pid))
namespace.clear()
print(namespace.is_free)
namespace.kill()
namespace.clear()
print(namespace.is_free)
namespace.end()
""")
    assert lines == ["0", "b''", "7", "True", "False"]


def test_an_orphan_is_reaped_while_the_job_runs() -> None:
    code = "namespace, pid = job(orphan); print(ended(pid)); namespace.end()"
    assert printed(programs.ORPHAN + code) == ["0"]


def test_the_end_of_a_server_ends_its_jobs() -> None:
    lines = printed("""
reader, writer = os.pipe()
server = os.fork()
if server == 0:
    job(lambda: time.sleep(600))
    time.sleep(600)
os.close(writer)
time.sleep(0.2)
os.kill(server, signal.SIGKILL)
print(ended(server))
print(os.read(reader, 1))  # returns: nobody holds the other end
""")
    assert lines == ["-9", "b''"]


def test_a_handler_of_the_server_is_none_of_the_init() -> None:
    lines = printed("""
signal.signal(signal.SIGTERM, lambda *_: os._exit(1))

def end_all():
    os.kill(1, signal.SIGTERM)
    time.sleep(0.1)

namespace, pid = job(end_all)
print(ended(pid))
namespace.end()
""")
    assert lines == ["0"]


def test_no_init_keeps_a_pipe_of_the_host_open() -> None:
    lines = printed("""
namespace = ProcessNamespace()
os.close(writer_of_host)
print(os.read(reader_of_host, 1))  # returns at once: nobody holds the other end
namespace.end()
""")
    assert lines == ["b''"]
