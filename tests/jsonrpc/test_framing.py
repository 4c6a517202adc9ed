"""Framing: whatever the chunks, the same messages; only what hides the next boundary is an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msp_bridge.jsonrpc.framing import (
    MAX_BODY,
    MAX_HEADER,
    MAX_NOISE,
    MAX_TOOL_BODY,
    Farewell,
    FrameDecoder,
    FramingError,
    MessageLimits,
    TolerantFrameDecoder,
    frame,
)


def decoded(data: bytes, decoder: FrameDecoder | None = None) -> list[bytes]:
    return list((decoder or FrameDecoder()).feed(data))


def test_a_frame_is_written_in_the_letter_case_that_every_client_reads() -> None:
    assert frame(b"{}") == b"Content-Length: 2\r\n\r\n{}"
    assert frame("é".encode()) == b"Content-Length: 2\r\n\r\n\xc3\xa9", "it counts bytes, not characters"


def test_a_frame_is_all_that_is_sent() -> None:
    decoder = FrameDecoder()
    assert decoder.replies() + decoder.probe() + decoder.farewell(Farewell.REFUSED) == b""


@given(st.lists(st.binary(max_size=200), max_size=6), st.lists(st.integers(0, 400), max_size=30))
def test_any_chunking_gives_the_same_messages(bodies: list[bytes], sizes: list[int]) -> None:
    data, decoder, seen = b"".join(map(frame, bodies)), FrameDecoder(), []
    for size in sizes:
        seen += decoded(data[:size], decoder)
        data = data[size:]
    seen += decoded(data, decoder)
    assert seen == bodies
    assert not decoder.mid_message


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 2\r\n\r\n",
        b"content-length: 2\r\n\r\n",
        b"CONTENT-LENGTH:2\r\n\r\n",
        b"Content-Length:   2  \r\n\r\n",
        b"Content-Length: 0002\r\n\r\n",
        b"Content-Length: 2\n\n",
        b"Content-Length: 2\n\r\n",
        b"Content-Length: 2\r\n\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        b"X-Nobody-Knows: \xff\xfe\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\ncontent-length: 2\r\n\r\n",
        b"\r\nContent-Length: 2\r\n\r\n",
        b"\nContent-Length: 2\n\n",
    ],
)
@pytest.mark.parametrize("body", [b"{}", b"\n\n", b"\r\n"])
def test_any_way_to_write_the_header_is_read(header: bytes, body: bytes) -> None:
    for cut in range(len(header) + len(body)):
        decoder = FrameDecoder()
        both = header + body
        assert decoded(both[:cut], decoder) + decoded(both[cut:] + frame(b"next"), decoder) == [body, b"next"]


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"\r\n\r\n", "no Content-Length"),
        (b"\n\n", "no Content-Length"),
        (b"Content-Type: text\r\n\r\n", "no Content-Length"),
        (b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n", "more than one Content-Length"),
        (b"no colon\r\nContent-Length: 2\r\n\r\n{}", "no header of a message"),
        (b"POST / HTTP/1.1\r\nHost: localhost:5678\r\nContent-Length: 2\r\n\r\n{}", "no header of a message"),
        (b"POST http://localhost/ HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "no header of a message"),
        (b"\x16\x03\x01\x02:\nContent-Length: 2\n\n{}", "no header of a message"),
        (b"\xff" + b"x" * 99 + b"\r\n\r\n", "no header of a message: '\N{REPLACEMENT CHARACTER}x{79}'$"),
        (b"Content-Length: 2\r\n : folded\r\n\r\n{}", "no header of a message"),
        (b"Content-Length:\r\n\r\n", "not a number"),
        (b"Content-Length: 2:3\r\n\r\n", "not a number"),
        (b"Content-Length: -2\r\n\r\n", "not a number"),
        (b"Content-Length: +2\r\n\r\n", "not a number"),
        (b"Content-Length: 2.0\r\n\r\n", "not a number"),
        (b"Content-Length: 0x2\r\n\r\n", "not a number"),
        (b"Content-Length: 1_0\r\n\r\n", "not a number"),
        (b"Content-Length: two\r\n\r\n", "not a number"),
        ("Content-Length: ٢\r\n\r\n".encode(), "not a number"),
        (b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1), "over the limit"),
        (b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", "over the limit"),
        (b"x" * (MAX_HEADER + 1), "header is longer"),
        (b"Content-Length: 2\r\nX: " + b"x" * MAX_HEADER, "header is longer"),
    ],
)
def test_a_header_that_hides_the_next_boundary_is_an_error(header: bytes, reason: str) -> None:
    bodies = FrameDecoder().feed(frame(b"{}") + header)
    assert next(bodies) == b"{}"
    with pytest.raises(FramingError, match=reason) as caught:
        next(bodies)
    assert len(str(caught.value)) < 300


def test_the_longest_header_that_is_allowed_is_read() -> None:
    start = b"Content-Length: 2\r\nX: "
    header = start + b"x" * (MAX_HEADER - len(start))
    for end in (b"\r\n\r\n", b"\n\n", b"\n\r\n"):
        message = header + end + b"{}"
        for cut in range(MAX_HEADER - 1, len(message)):
            decoder = FrameDecoder()
            assert decoded(message[:cut], decoder) + decoded(message[cut:], decoder) == [b"{}"]
        with pytest.raises(FramingError, match="header is longer"):
            decoded(b"x" + message)


def test_the_biggest_body_that_is_allowed_is_read() -> None:
    assert decoded(frame(b"12345"), FrameDecoder(MessageLimits(body=5))) == [b"12345"]
    with pytest.raises(FramingError):
        decoded(frame(b"123456"), FrameDecoder(MessageLimits(body=5)))


@pytest.mark.parametrize(
    ("data", "mid"), [(b"", False), (b"C", True), (b"Content-Length: 2\r\n\r\n{", True), (frame(b"{}"), False)]
)
def test_a_message_that_is_cut_short_is_noticed(data: bytes, mid: bool) -> None:
    decoder = FrameDecoder()
    decoded(data, decoder)
    assert decoder.mid_message is mid


@given(st.binary(max_size=400))
def test_any_bytes_are_either_cut_or_an_error(data: bytes) -> None:
    try:
        bodies = decoded(data)
    except FramingError:
        return
    assert sum(map(len, bodies)) <= len(data)


@pytest.mark.parametrize(
    "noise",
    [
        b"",
        b"[07:20:00 INF] Version: 4.16.0\n",
        b'\xff\xfe\x00{"jsonrpc": \r\n\r\n',
        b"Content-Length: 5\r\n\r\nhello, this is no JSON",
        b"Content-Length: ",
        b"Content-Length: 12345678901234567890\r\n\r\n",
        b"<" + b"x" * MAX_NOISE,
    ],
)
def test_messages_are_found_among_what_else_a_tool_prints(noise: bytes) -> None:
    typed = b'Content-Length: 8\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{"id":2}'
    data = noise + frame(b'{"id": 1}') + frame(b"[]") + noise + typed + b"Content-Length: 9\r\n\r\n{"
    for size in (1, 7, len(data)):
        decoder, found = TolerantFrameDecoder(), []
        for at in range(0, len(data), size):
            found += decoder.feed(data[at : at + size])
        assert found == [{"id": 1}, {"id": 2}]
        decoder.finish()
        assert decoder.noise == (noise + noise + b"Content-Length: 9\r\n\r\n{")[-MAX_NOISE:]
        assert list(decoder.feed(frame(b'{"id": 3}'))) == [{"id": 3}]


def test_what_a_tool_prints_besides_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "msp_bridge.jsonrpc.framing")
    decoder = TolerantFrameDecoder()
    assert list(decoder.feed(b" caf\xe9 \n" + frame(b"{}"))) == [{}]
    assert caplog.messages == ["skipped:  caf\N{REPLACEMENT CHARACTER}"]
    assert list(decoder.feed(b"x" * MAX_NOISE)) == []
    assert len(decoder.noise) > MAX_NOISE - 200, "it is not kept until a message comes"


def test_the_message_of_a_tool_may_be_as_long_as_the_limit() -> None:
    assert list(TolerantFrameDecoder().feed(b"Content-Length: %d\r\n\r\n" % MAX_TOOL_BODY)) == []
    with pytest.raises(
        FramingError, match=f"a message of {MAX_TOOL_BODY + 1} bytes is over the limit of {MAX_TOOL_BODY}$"
    ):
        list(TolerantFrameDecoder().feed(b"Content-Length: %d\r\n\r\n" % (MAX_TOOL_BODY + 1)))
