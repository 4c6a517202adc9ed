import asyncio
import threading

from subject.core import total

LOOP = asyncio.new_event_loop()


def test_a_loop_that_is_made_at_import():
    assert LOOP.run_until_complete(total(1)) == 0


def test_it_is_woken_by_a_thread():
    done = LOOP.create_future()
    threading.Timer(0.01, LOOP.call_soon_threadsafe, (done.set_result, 0)).start()
    assert LOOP.run_until_complete(asyncio.wait_for(done, 5)) == LOOP.run_until_complete(total(1))
