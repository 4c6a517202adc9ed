"""Prompts: what a user asks an agent for by a command of its client, such as `/raise_score src/shop/cart.py`."""

from __future__ import annotations

from pathlib import Path

from mcp import MCPError
from mcp_types import INVALID_PARAMS, GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage
from mcp_types import TextContent as Text

from msp_bridge.errors import BridgeError
from msp_bridge.mcp.answers import error_text
from msp_bridge.text import visible
from msp_bridge.workspace.targets import select

RAISE_SCORE = Prompt(
    name="raise_score",
    title="Raise the score of a file",
    description="Write the tests that a file lacks: test its mutants, and kill the survivors one by one.",
    arguments=[
        PromptArgument(
            name="file",
            title="File",
            description="Relative to the project's root; also a directory, or lines of a file (src/cart.py:20-40).",
            required=True,
        )
    ],
)
STEPS = """\
Raise the mutation score of {file} by better tests.

1. Call test_mutants with paths ["{file}"]. Tell me the score, and how many mutants survive. Correct tests that fail
   without any mutant first.
2. Call next_survivor with paths ["{file}"]. Say in one sentence which behaviour no test asserts.
3. Write or extend a test in the style of the tests that are there. It asserts behaviour that callers rely on, passes
   now, and fails with the diff applied. Don't assert how the code works inside. If the code is wrong, show me that
   instead of a test that holds the fault.
4. Call test_mutants with the mutant's id. It must be Killed; survivors of the same lines often are then, too.
5. Go on with step 2. Pass as skip the ids of survivors that no caller could tell from the original: collect them, and
   ask me at the end whether to accept each (accept_mutant), with your reason.
6. At the end call test_mutants with paths ["{file}"] again. Tell me the score before and after, the tests that are
   new, and what is left.

Change tests alone, and the code only where it is wrong and I agree.
"""


def prompt_of(root: Path, params: GetPromptRequestParams) -> GetPromptResult:
    """The prompt that a client asks for. Raises MCPError."""
    if params.name != RAISE_SCORE.name:
        raise MCPError(INVALID_PARAMS, f"there is no prompt {params.name[:100]!r}; there is {RAISE_SCORE.name}")
    arguments = params.arguments or {}
    if set(arguments) != {"file"}:
        raise MCPError(INVALID_PARAMS, f"{RAISE_SCORE.name} has one argument, file, which it needs")
    file = arguments["file"].strip()
    try:
        select(root, [file])
    except BridgeError as error:
        raise MCPError(INVALID_PARAMS, error_text(error)) from None
    text = Text(type="text", text=visible(STEPS.format(file=file)))
    return GetPromptResult(description=RAISE_SCORE.title, messages=[PromptMessage(role="user", content=text)])
