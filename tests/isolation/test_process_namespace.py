"""Process namespaces: a job is a child of its server, and all that it starts ends with it."""

from support import programs

PRELUDE = """
import importlib.util, os, signal, sys, time
from msp_bridge.isolation.process_namespace import NamespaceMaker, ProcessNamespace

reader_of_host, writer_of_host = os.pipe()
try:
    maker = NamespaceMaker()
except OSError as error:
    print("refused:", error)
    sys.exit()


def job(work):
    namespace = maker.take()
    pid = namespace.fork()
    if pid == 0:
        work()
        os._exit(0)
    return namespace, pid


def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def printed(code: str) -> list[str]:
    """What a process of its own prints: it must have a single thread, and may get another parent."""
    return programs.printed(PRELUDE + code)


def test_a_job_is_a_child_whose_end_is_seen_as_it_was() -> None:
    lines = printed("""
namespace, pid = job(lambda: os._exit(7))
print(ended(pid)); namespace.end()
namespace, pid = job(lambda: os.kill(os.getpid(), signal.SIGALRM))
print(ended(pid)); namespace.end()
print(os.readlink("/proc/self/ns/pid") == os.readlink("/proc/self/ns/pid_for_children"))
""")
    assert lines == ["7", "-14", "True"]


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


def test_an_orphan_is_reaped_while_the_job_runs() -> None:
    lines = printed("""
def orphan():
    reader, writer = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            os.write(writer, b"%d" % os.getpid())
            os._exit(0)
        os._exit(0)
    os.wait()
    stray = int(os.read(reader, 20))
    while True:  # until the kernel knows it no more
        try:
            os.kill(stray, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)

namespace, pid = job(orphan)
print(ended(pid)); namespace.end()
""")
    assert lines == ["0"]


def test_a_maker_that_has_ended_is_an_error_and_ends_the_jobs() -> None:
    lines = printed("""
namespace, pid = job(lambda: time.sleep(600))
os.kill(maker.pid, signal.SIGKILL)
print(ended(pid))
namespace.end()
try:
    maker.take()
except OSError:
    print("an error")
""")
    assert lines == ["-9", "an error"]


def test_neither_maker_nor_init_keeps_a_pipe_of_the_host_open() -> None:
    lines = printed("""
namespace = maker.take()
os.close(writer_of_host)
print(os.read(reader_of_host, 1))  # returns at once: nobody holds the other end
namespace.end()
""")
    assert lines == ["b''"]
