"""A guard: a filter of system calls by which a process ends at its first lasting effect, where there is no namespace.

Theory of operation
-------------------
The problem. Without namespaces a process shares files, ports and processes with all others. What it writes can only be
undone afterwards, while no other runs. But most processes of tests write nothing.

The way out. The kernel looks at each system call of a guarded process (seccomp). It lets pass what changes nothing
beyond the process. At any other call it ends the whole process by SIGSYS, before the call has done anything. So no
guarded process leaves anything behind, however it ends, and several can run side by side. No handler can catch that
signal, and no code of the process sees a call fail. Each allowed call has its usual answer, but `clone3`: its flags
can't be looked at, and libraries go on with `clone`.

What a forked process has inherited could reach others:

- Descriptors share their offset with the parent's. A guarded process gets its own of files to read, of directories and
  of temporary files without a name (`own_descriptors`). Any use of another inherited one is a lasting effect.
- Memory that is shared and writable is reached without a call: see `shared_memory`.

Known limit: a process that ends itself by SIGSYS looks like one that was ended by the guard.
"""

from __future__ import annotations

import os
import resource
import signal
import stat
import struct
import sys
import threading
from collections.abc import Collection, Iterable, Sequence
from os import mkdir  # as it is before a test replaces it
from typing import NoReturn

from . import kernel
from .descriptors import OpenFile, open_files

ENDED = -signal.SIGSYS  # as `os.waitstatus_to_exitcode` says it
MOST_INHERITED = 60  # descriptors; the program has some instructions for each, and no process with more is guarded
HARMLESS_DEVICES = {os.makedev(1, minor) for minor in (3, 5, 7, 8, 9)}  # null, zero, full, random, urandom

# The names of system calls, each with its number on x86_64 and on arm64.
_ALLOWED = """
access 21 -  alarm 37 -  arch_prctl 158 -  brk 12 214  capget 125 90  chdir 80 49  clock_getres 229 114
clock_gettime 228 113  clock_nanosleep 230 115  close 3 57  close_range 436 436  epoll_create 213 -
epoll_create1 291 20  eventfd 284 -  eventfd2 290 19  exit 60 93  exit_group 231 94  faccessat 269 48
faccessat2 439 439  fadvise64 221 223  fchdir 81 50  fdatasync 75 83  fgetxattr 193 10  flistxattr 196 13  fstat 5 80
fstatfs 138 44  fsync 74 82  futex 202 98  futex_waitv 449 449  get_mempolicy 239 236  get_robust_list 274 100
getcpu 309 168  getcwd 79 17  getdents 78 -  getdents64 217 61  getegid 108 177  geteuid 107 175  getgid 104 176
getgroups 115 158  getitimer 36 102  getpeername 52 205  getpgid 121 155  getpgrp 111 -  getpid 39 172  getppid 110 173
getpriority 140 141  getrandom 318 278  getresgid 120 150  getresuid 118 148  getrlimit 97 163  getrusage 98 165
getsid 124 156  getsockname 51 204  getsockopt 55 209  gettid 186 178  gettimeofday 96 169  getuid 102 174
getxattr 191 8  lgetxattr 192 9  listxattr 194 11  llistxattr 195 12  lstat 6 -  madvise 28 233  membarrier 324 283
memfd_create 319 279  mincore 27 232  mprotect 10 226  mremap 25 216  mseal 462 462  msync 26 227  munmap 11 215
nanosleep 35 101  newfstatat 262 79  pause 34 -  pipe 22 -  pipe2 293 59  poll 7 -  ppoll 271 73  pread64 17 67
preadv 295 69  preadv2 327 286  pselect6 270 72  readahead 187 213  readlink 89 -  readlinkat 267 78
restart_syscall 219 128  rseq 334 293  rt_sigaction 13 134  rt_sigpending 127 136  rt_sigprocmask 14 135
rt_sigreturn 15 139  rt_sigsuspend 130 133  rt_sigtimedwait 128 137  sched_get_priority_max 146 125
sched_get_priority_min 147 126  sched_getaffinity 204 123  sched_getparam 143 121  sched_getscheduler 145 120
sched_rr_get_interval 148 127  sched_yield 24 124  select 23 -  set_robust_list 273 99  set_tid_address 218 96
setitimer 38 103  sigaltstack 131 132  signalfd 282 -  signalfd4 289 74  socketpair 53 199  stat 4 -  statfs 137 43
statx 332 291  sysinfo 99 179  time 201 -  timer_create 222 107  timer_delete 226 111  timer_getoverrun 225 109
timer_gettime 224 108  timer_settime 223 110  timerfd_create 283 85  timerfd_gettime 287 87  timerfd_settime 286 86
times 100 153  umask 95 166  uname 63 160  wait4 61 260  waitid 247 95
"""
_WITH_OWN_DESCRIPTOR = """
dup 32 23  dup2 33 -  dup3 292 24  epoll_ctl 233 21  epoll_pwait 281 22  epoll_pwait2 441 441  epoll_wait 232 -
ftruncate 77 46  lseek 8 62  pwrite64 18 68  pwritev 296 70  read 0 63  readv 19 65  recvfrom 45 207  recvmsg 47 212
setsockopt 54 208  shutdown 48 210  write 1 64  writev 20 66
"""
_WITH_OWN_PROCESS = "kill 62 129  prlimit64 302 261  rt_sigqueueinfo 129 138  rt_tgsigqueueinfo 297 240  tgkill 234 131"
_LOOKED_AT = (
    "clone 56 220  clone3 435 435  fcntl 72 25  ioctl 16 29  mmap 9 222  open 2 -  openat 257 56  prctl 157 167"
    "  sendto 44 206"
)
_MACHINES = {"x86_64": (1, 0xC000003E), "aarch64": (2, 0xC00000B7)}  # the column of a number, and the kernel's name

_OF_A_THREAD = 0x10000  # CLONE_THREAD
_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | 0o20000000  # __O_TMPFILE
_FCNTL = (0, 1, 2, 3, 4, 1030, 1032, 1034)  # copies of a descriptor, its flags, the size of a pipe, seals
_IOCTL = (0x5401, 0x540F, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # of a terminal, what can be read, FIONBIO, FIOCLEX
_PRCTL = (3, 15, 16, 21, 23, 39, 0x53564D41)  # what is set, and names of a thread or of its memory

_LOAD, _EQUALS, _ABOVE, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06  # operations of the program
_ALLOW, _END, _UNKNOWN = 0x7FFF0000, 0x80000000, 0x00050000 | 38  # _UNKNOWN: ENOSYS
_X32 = 0x3FFFFFFF  # numbers above it are of another table

Program = list[tuple[int, int, int, int]]  # operation, jump if true, jump if false, operand


def enter(own: Collection[int] = (), log: os.stat_result | None = None) -> None:
    """Guard this process, which has a single thread, from now on. Raises OSError, with nothing changed but descriptors.

    `own` are descriptors that no other process has. What leads to the file `log` leads to /dev/null afterwards.
    """
    inherited = own_descriptors(own, log)
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    core = 1 if hard == resource.RLIM_INFINITY else min(1, hard)  # 0 would dump to a program, where one is named
    resource.setrlimit(resource.RLIMIT_CORE, (core, hard))
    code = program(os.uname().machine, os.getpid(), inherited[:MOST_INHERITED])
    kernel.filter_calls(b"".join(struct.pack("HBBI", *each) for each in code))
    if len(inherited) > MOST_INHERITED:
        end()


def end() -> NoReturn:
    """End this process, which is guarded, as a lasting effect does."""
    mkdir("/")
    raise AssertionError("this process is not guarded")


def why_not() -> str:
    """Why no process can be guarded here; empty where one can. A process tries it."""
    if reason := kernel.why_not():
        return reason
    if os.uname().machine not in _MACHINES or sys.maxsize < 1 << 32:
        return f"there is no filter of system calls for {os.uname().machine}"
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        _try(writer)
    os.close(writer)
    with open(reader, encoding="utf-8") as stream:
        said = stream.read()
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if (said, ended) == (_PASSED, ENDED):
        return ""
    return "the filter ends what changes nothing" if ended == ENDED else said.removeprefix(_PASSED)


_PASSED = "passed "


def _try(writer: int) -> NoReturn:
    try:
        enter({writer})
        thread = threading.Thread(target=os.getcwd)
        thread.start()
        thread.join()
        os.write(writer, _PASSED.encode())
        os.open(os.devnull, os.O_WRONLY)
        os.write(writer, b"the kernel does not end a process that opens a file to write")
    except BaseException as error:
        os.write(writer, str(error).encode())
    finally:
        os._exit(0)


# what is inherited


def shared_memory() -> frozenset[str]:
    """The addresses of memory that this process shares with its forks, and may write to."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as stream:
        fields = [line.split(maxsplit=2) for line in stream]
    return frozenset(addresses for addresses, rights, _ in fields if "w" in rights and "s" in rights)


def own_descriptors(own: Collection[int] = (), log: os.stat_result | None = None) -> list[int]:
    """Have this process share no descriptor with another, as far as that can be; -> the others."""
    return [each.number for each in open_files() if each.number not in own and not _is_own(each, log)]


def _is_own(file: OpenFile, log: os.stat_result | None) -> bool:
    """Whether it reaches no other process, or does so no more."""
    if file.kind == stat.S_IFCHR and file.status.st_rdev in HARMLESS_DEVICES:
        return True
    try:
        if log is not None and file.is_same(log):
            file.lead_to(os.open(os.devnull, os.O_RDWR))
        elif file.can_be_own and not file.is_written:
            file.open_again(f"/proc/self/fd/{file.number}")
        else:
            return False
    except OSError:  # it has been opened for less, or is gone
        return False
    return True


# the program


def program(machine: str, process: int, inherited: Sequence[int]) -> Program:
    """The filter, in BPF, for the process of that number."""
    column, name = _MACHINES[machine]
    own = _none_of(0, inherited)
    rules: dict[str, Program] = {name: [] for name in _numbers(_ALLOWED, column)}
    rules |= dict.fromkeys(_numbers(_WITH_OWN_DESCRIPTOR, column), own)
    rules |= dict.fromkeys(_numbers(_WITH_OWN_PROCESS, column), _one_of(0, (process,)))
    rules |= {
        "prlimit64": _one_of(0, (0, process)),
        "clone": _some_bit(0, _OF_A_THREAD),
        "clone3": [(_RETURN, 0, 0, _UNKNOWN)],
        "open": _no_bit(1, _TO_WRITE),
        "openat": _no_bit(2, _TO_WRITE),
        "fcntl": own + _one_of(1, _FCNTL),
        "ioctl": own + _one_of(1, _IOCTL),
        "mmap": _none_of(4, inherited),
        "prctl": _one_of(0, _PRCTL),
        "sendto": own + _one_of(4, (0,)) + _one_of(4.5, (0,)),  # to no address
    }
    found: Program = [(_LOAD, 0, 0, 4), (_EQUALS, 1, 0, name), (_RETURN, 0, 0, _END), (_LOAD, 0, 0, 0)]
    found += [(_ABOVE, 0, 1, _X32), (_RETURN, 0, 0, _END)]
    for call, number in numbers(machine).items():
        body = [*rules[call], (_RETURN, 0, 0, _ALLOW)]
        found += [(_EQUALS, 0, len(body), number), *body]
    return [*found, (_RETURN, 0, 0, _END)]


def numbers(machine: str) -> dict[str, int]:
    """The numbers of all calls that may pass, by their names."""
    column, _ = _MACHINES[machine]
    return _numbers(" ".join((_ALLOWED, _WITH_OWN_DESCRIPTOR, _WITH_OWN_PROCESS, _LOOKED_AT)), column)


def _numbers(text: str, column: int) -> dict[str, int]:
    words = text.split()
    pairs = zip(words[::3], words[column::3], strict=True)
    return {name: int(number) for name, number in pairs if number != "-"}


def _load(argument: float) -> tuple[int, int, int, int]:
    """The lower half of an argument of the call; of `.5` the upper one. Both machines put the lower one first."""
    return _LOAD, 0, 0, int(16 + 8 * argument)


def _none_of(argument: float, values: Iterable[int]) -> Program:
    """Each of these checks ends the process, or goes on."""
    tests = [[(_EQUALS, 0, 1, value), (_RETURN, 0, 0, _END)] for value in values]
    return [_load(argument), *(each for test in tests for each in test)]


def _one_of(argument: float, values: Sequence[int]) -> Program:
    tests = [(_EQUALS, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_load(argument), *tests, (_RETURN, 0, 0, _END)]


def _no_bit(argument: float, bits: int) -> Program:
    return [_load(argument), (_ANY_BIT, 0, 1, bits), (_RETURN, 0, 0, _END)]


def _some_bit(argument: float, bits: int) -> Program:
    return [_load(argument), (_ANY_BIT, 1, 0, bits), (_RETURN, 0, 0, _END)]
