"""Authentication: the first message of a client, which shows the token. It must be small, and come soon."""

from __future__ import annotations

import asyncio
from typing import Any

from msp_bridge.access.refusal import Refusal
from msp_bridge.access.token import Token
from msp_bridge.jsonrpc.framing import FramingError, Limits
from msp_bridge.jsonrpc.json_text import NotJson, dump, parse
from msp_bridge.jsonrpc.message_stream import MessageStream
from msp_bridge.jsonrpc.messages import Call, RpcError, call_of, id_of

METHOD = "authenticate"
PATIENCE = 10.0  # s for the whole message
LIMITS = Limits(header=1024, body=4 * 1024)
DELAY = 0.5  # s before a wrong token is answered
WANTED = f'this server wants a token: the first message must be the request `{METHOD}` with params {{"token": "…"}}'


async def authenticate(messages: MessageStream, token: Token) -> None:
    """Returns when the client has shown the token, and has been answered. Raises Refusal."""
    messages.limit(LIMITS)
    call = await _first_call(messages)
    shown = call.params.get("token") if isinstance(call.params, dict) else None
    if call.method != METHOD or call.id is None or not isinstance(shown, str):
        raise Refusal(WANTED, call.id)
    if not token.matches(shown):
        await asyncio.sleep(DELAY)
        raise Refusal(
            "this is not the server's token; compare it with the server's --token-file, or its MSP_BRIDGE_TOKEN",
            call.id,
        )
    await messages.send(dump({"jsonrpc": "2.0", "id": call.id, "result": {}}))
    messages.limit(Limits())


async def _first_call(messages: MessageStream) -> Call:
    message: Any = None
    try:
        async with asyncio.timeout(PATIENCE):
            body = await messages.receive()
        if body is None:
            raise Refusal("it left without a word")
        message = parse(body)
        return call_of(message)
    except TimeoutError:
        raise Refusal(f"{WANTED}, within {PATIENCE:g} s") from None
    except (FramingError, NotJson, RpcError) as error:
        raise Refusal(WANTED, id_of(message)) from error
