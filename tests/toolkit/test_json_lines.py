"""A program in another interpreter: every question is answered, or fails with what the program printed last."""

import asyncio
import re
import sys
from pathlib import Path

import psutil
import pytest
from support.strays import marked, new_mark

from msp_bridge.errors import ToolError
from msp_bridge.toolkit import json_lines
from msp_bridge.toolkit.json_lines import MARK, REMEDY, JsonLinesProcess, ProcessEnded

PRELUDE = f"""
import json, os, signal, sys, time
MARK = {MARK!r}

def send(message):
    os.write(1, json.dumps(message).encode() + b"\\n")

def questions():
    for line in sys.stdin:
        yield json.loads(line)

def begin(**more):
    os.write(1, b"\\n" + MARK + b"\\n")
    send({{"id": 0, **more}})
"""
ECHO = "begin()\nfor question in questions(): send({'id': question['id'], 'echo': question})"


def program(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", PRELUDE + code, *arguments]


async def start(code: str, cwd: Path, *arguments: str, **options: object) -> JsonLinesProcess:
    return await JsonLinesProcess.start(program(code, *arguments), name="the echo", cwd=cwd, **options)  # type: ignore[arg-type]


async def test_an_answer_belongs_to_its_question(tmp_path: Path) -> None:
    process = await start(ECHO, tmp_path)
    answers = await asyncio.gather(*(process.ask({"number": number}) for number in range(20)))
    assert [answer["echo"]["number"] for answer in answers] == list(range(20))
    assert not process.closed
    await process.close()
    assert process.closed


async def test_answers_may_come_in_any_order(tmp_path: Path) -> None:
    process = await start(
        "begin()\nfirst, second = next(it := questions()), next(it)\nsend({'id': second['id']})\nsend({'id': first['id']})\n"
        "for question in it: pass",
        tmp_path,
    )
    (one, first), (two, second) = process.post({}), process.post({})
    assert ((await second)["id"], (await first)["id"]) == (two, one) == (2, 1)
    await process.close()


async def test_the_greeting_is_kept(tmp_path: Path) -> None:
    process = await start("begin(version='3.2')\n" + ECHO.partition("\n")[2], tmp_path)
    assert process.greeting == {"id": 0, "version": "3.2"}
    await process.close()


async def test_what_is_printed_before_the_mark_is_no_answer(tmp_path: Path) -> None:
    process = await start("print('{\"id\": 0}\\nhello')\nsys.stdout.flush()\n" + ECHO, tmp_path)
    assert (await process.ask({"a": 1}))["echo"] == {"id": 1, "a": 1}
    await process.close()


async def test_a_cancelled_question_leaves_the_process_to_the_others(tmp_path: Path) -> None:
    process = await start(ECHO, tmp_path)
    asking = asyncio.create_task(process.ask({"a": 1}))
    await asyncio.sleep(0)  # it is sent now
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (await process.ask({"a": 2}))["echo"]["a"] == 2
    await process.close()


ENDINGS = {
    "exit code 3": (
        "os.write(2, b'last words'); os._exit(3)",
        "last words",
    ),
    "killed by SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", ""),
    "ended (exit code 0)": ("sys.exit()", ""),
    "exit code 1": ("raise ImportError('no such module')", "ImportError: no such module"),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_an_end_at_the_start_says_how_and_what_was_printed(ending: str, tmp_path: Path) -> None:
    code, printed = ENDINGS[ending]
    with pytest.raises(ProcessEnded) as caught:
        await start(code, tmp_path)
    assert "the echo" in caught.value.problem
    assert ending in caught.value.problem
    assert printed in caught.value.problem
    assert caught.value.remedy == REMEDY


@pytest.mark.parametrize("ending", ENDINGS)
async def test_an_end_later_fails_all_pending_questions(ending: str, tmp_path: Path) -> None:
    code, printed = ENDINGS[ending]
    process = await start(f"begin()\nnext(it := questions()); next(it)\n{code}", tmp_path)
    failures = await asyncio.gather(process.ask({}), process.ask({}), return_exceptions=True)
    for failure in failures:
        assert isinstance(failure, ProcessEnded)
        assert ending in failure.problem
        assert printed in failure.problem
    assert process.closed
    with pytest.raises(ProcessEnded, match=re.escape(ending)):
        await process.ask({})
    await process.close()


async def test_a_question_to_a_closed_process_fails(tmp_path: Path) -> None:
    process = await start(ECHO, tmp_path)
    await process.close()
    await process.close()
    with pytest.raises(ProcessEnded, match="the echo was closed"):
        await process.ask({})
    _, answer = process.post({})
    assert isinstance(answer.exception(), ProcessEnded)


async def test_closing_fails_what_is_pending(tmp_path: Path) -> None:
    process = await start("begin()\nfor question in questions(): pass", tmp_path)
    _, answer = process.post({})
    await process.close()
    assert isinstance(answer.exception(), ProcessEnded)


async def test_a_line_that_is_no_answer_ends_the_process(tmp_path: Path) -> None:
    process = await start("begin()\nnext(questions())\nprint('Traceback', flush=True)\ntime.sleep(600)", tmp_path)
    with pytest.raises(ProcessEnded, match="it wrote 'Traceback'"):
        await process.ask({})
    await process.close()


async def test_output_without_end_before_the_mark_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProcessEnded, match="prints without end"):
        await start("while True: print('noise')", tmp_path)


async def test_a_program_that_never_greets_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "START_TIMEOUT_S", 1.0)
    mark = new_mark()
    with pytest.raises(ProcessEnded, match=r"did not start within 1 s .*: stuck in an import"):
        await start("print('stuck in an import', file=sys.stderr, flush=True)\ntime.sleep(600)", tmp_path, mark)
    assert marked(mark) == []


async def test_questions_do_not_wait_for_a_program_that_does_not_read(tmp_path: Path) -> None:
    process = await start("begin()\ntime.sleep(600)", tmp_path)
    posted = [process.post({"content": "x" * 100_000}) for _ in range(20)]  # far more than a pipe holds
    await process.close()
    assert all(isinstance(answer.exception(), ProcessEnded) for _, answer in posted)


async def test_a_start_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    mark, started = new_mark(), tmp_path / "started"
    code = f"open({str(started)!r}, 'w').close()\ntime.sleep(600)"
    starting = asyncio.create_task(start(code, tmp_path, mark))
    while not started.exists() and not starting.done():
        await asyncio.sleep(0.01)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert marked(mark) == []


async def test_damaged_bytecode_is_deleted_and_the_start_tried_again(tmp_path: Path) -> None:
    damaged = tmp_path / "kept" / "module.pyc"
    damaged.parent.mkdir()
    damaged.write_bytes(b"")
    code = f"if os.path.exists({str(damaged)!r}): raise EOFError('marshal data too short')\n{ECHO}"
    process = await start(code, tmp_path, bytecode=damaged.parent)
    assert not damaged.exists()
    await process.close()


async def test_bytecode_that_stays_damaged_is_an_error_after_one_retry(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    code = f"open({str(starts)!r}, 'a').write('.')\nraise EOFError('marshal data too short')"
    with pytest.raises(ProcessEnded, match="marshal data too short"):
        await start(code, tmp_path, bytecode=tmp_path / "kept")
    assert starts.read_text() == ".."


async def test_a_program_that_is_killed_at_its_start_is_started_once_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    starts = tmp_path / "starts"
    dies = (
        f"open({str(starts)!r}, 'a').write('.')\nif len(open({str(starts)!r}).read()) < {{}}: os.kill(os.getpid(), 9)\n"
    )
    process = await start(dies.format(2) + ECHO, tmp_path)
    await process.close()
    assert caplog.messages == ["the echo ended (killed by SIGKILL); it is started again"]
    starts.write_text("")
    with pytest.raises(ProcessEnded, match="killed by SIGKILL") as caught:
        await start(dies.format(9) + ECHO, tmp_path)
    assert caught.value.killed
    assert starts.read_text() == ".."


async def test_a_program_that_is_not_there_is_a_tool_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        await JsonLinesProcess.start([tmp_path / "python"], name="the echo", cwd=tmp_path)
    assert not isinstance(caught.value, ProcessEnded)


async def test_its_pid_is_that_of_a_living_process(tmp_path: Path) -> None:
    process = await start(ECHO, tmp_path)
    assert psutil.pid_exists(process.pid)
    await process.close()
    assert not psutil.pid_exists(process.pid)
