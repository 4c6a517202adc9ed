"""The tools as an agent sees them: names, descriptions, arguments, and what each answers.

An agent chooses by these texts alone, so each says when to call the tool, and what to do with the answer. Schemas are
kept short: they are in the context of every conversation.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from attrs import frozen
from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    GetPromptRequestParams,
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    Tool,
    ToolAnnotations,
)
from mcp_types import TextContent as Text
from pydantic import BaseModel, ConfigDict, FailFast, Field
from pydantic.json_schema import SkipJsonSchema

from msp_bridge.errors import BridgeError, ConfigurationError
from msp_bridge.mcp.answers import (
    AcceptedMutant,
    IgnoreEdit,
    LastResults,
    MutantList,
    NextSurvivor,
    ShownMutant,
    Survivors,
    TestReport,
    error_text,
)
from msp_bridge.text import visible
from msp_bridge.workspace.targets import select

INSTRUCTIONS = """\
Mutation testing: a mutant is one small change of the code. One that survives is a bug that the tests would miss.

1. After you have changed code, call test_mutants with since="HEAD", or with the paths that you work on. After a change
   of tests alone, call it with the paths of the code that they test, or with ids: since selects changed code.
2. For a survivor, call show_mutant, then write a test that passes now and fails with the diff applied. If the code
   itself turns out to be wrong or needless, correct it.
3. Call test_mutants with the ids of the survivors again, until they are Killed.
4. A result counts until a file is edited, a test file, too: then it is outdated, and test_mutants gives a new one.
5. Only when the change makes no difference that a caller could see, and the user agrees: accept_mutant writes it to
   mutants-accepted.toml, with the reason; or ignore_mutant returns the edit of the source that leaves it out.

If your client ends calls after some time (often 60 s), pass a max_seconds below that: the same call again goes on.
next_survivor says what to work on, also after a run in a terminal.
Only accept_mutant writes to the project. Tests run in private copies.
"""
MAX_LISTED = 500
MAX_TESTED = 2000
MAX_SURVIVORS = 200
MAX_SECONDS = 86_400

Paths = Annotated[
    list[str],
    FailFast(),
    Field(
        description="Files, directories, lines of a file (src/cart.py:20-40) or one place (src/cart.py:30:15), "
        "relative to the project's root, no patterns. Default: the whole project."
    ),
]
Since = Annotated[
    str | SkipJsonSchema[None],
    Field(
        description="A git revision. Only mutants on lines that have changed since HEAD left it: HEAD is what is not "
        "committed yet, main what the branch has changed. New files count. A change of tests alone selects nothing."
    ),
]
Id = Annotated[str, Field(description="The id of a mutant, from list_mutants, test_mutants or survivors.")]
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


class Arguments(BaseModel):
    """Arguments of a tool; an unknown name is an error, since it may be a typing error."""

    model_config = ConfigDict(extra="forbid")

    def named(self, argument: str) -> Sequence[str] | None:
        """A list of names, or None without this argument. Raises ConfigurationError for an empty one."""
        if argument not in self.model_fields_set:
            return None
        names: list[str] = getattr(self, argument)
        if not names:
            raise ConfigurationError(f"{argument} is empty, which selects nothing", "leave it out, or name some")
        return names


class ListArguments(Arguments):
    """The arguments of `list_mutants`."""

    paths: Paths = []
    since: Since = None
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED, description="Mutants in one answer.")] = 50
    cursor: Annotated[
        str | SkipJsonSchema[None], Field(description="next_cursor of the answer before, with the same arguments.")
    ] = None


class TestArguments(Arguments):
    """The arguments of `test_mutants`."""

    __test__ = False  # pytest takes it for tests

    paths: Paths = []
    ids: Annotated[
        list[str],
        FailFast(),
        Field(max_length=MAX_TESTED, description="Exactly these mutants; not together with paths or since."),
    ] = []
    since: Since = None
    limit: Annotated[
        int,
        Field(
            ge=1,
            le=MAX_TESTED,
            description="Mutants to test in this call. First untested ones, then survivors: "
            "the same call again goes on where this one ends. Doesn't count for ids.",
        ),
    ] = 100
    max_seconds: Annotated[
        int | SkipJsonSchema[None],
        Field(
            ge=1,
            le=MAX_SECONDS,
            description="Answer after this time with what is tested by then; the same call again goes on. What runs "
            "before the first mutant, as all tests without mutants, goes on meanwhile.",
        ),
    ] = None


class SurvivorsArguments(Arguments):
    """The arguments of `survivors`."""

    paths: Paths = []
    limit: Annotated[int, Field(ge=1, le=MAX_SURVIVORS, description="Survivors in the answer.")] = 10


class ShowArguments(Arguments):
    """The arguments of `show_mutant`."""

    id: Id


class IgnoreArguments(Arguments):
    """The arguments of `ignore_mutant`."""

    id: Id
    reason: Annotated[
        str,
        Field(
            min_length=1, description="Why no test can or should kill it, in one sentence: it stands in the comment."
        ),
    ]


class ResultsArguments(Arguments):
    """The arguments of `results`."""

    paths: Paths = []
    status: Annotated[list[str], FailFast(), Field(description="Only these, such as Survived and NoCoverage.")] = []
    mutator: Annotated[str | SkipJsonSchema[None], Field(description="Only mutators with this in their name.")] = None
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED, description="Mutants in the answer.")] = 50


class NextArguments(Arguments):
    """The arguments of `next_survivor`."""

    paths: Paths = []
    skip: Annotated[
        list[str], FailFast(), Field(max_length=MAX_TESTED, description="Ids of survivors to leave for later.")
    ] = []


class AcceptArguments(Arguments):
    """The arguments of `accept_mutant`."""

    id: Id
    reason: Annotated[str, Field(min_length=1, description="Why no test can or should kill it, in one sentence.")]


@frozen
class ToolSpec:
    """One tool: what it is called with, what it answers, and its description."""

    title: str
    arguments: type[Arguments]
    answer: type[BaseModel]
    description: str
    runs_tests: bool = False
    writes: bool = False  # into the project

    def tool(self, name: str) -> Tool:
        """The tool as `tools/list` has it."""
        return Tool(
            name=name,
            title=self.title,
            description=self.description,
            input_schema=_schema(self.arguments, "validation"),
            output_schema=_schema(self.answer, "serialization"),
            annotations=ToolAnnotations(
                read_only_hint=not (self.runs_tests or self.writes),
                destructive_hint=False,
                idempotent_hint=True,
                open_world_hint=False,
            ),
        )


TOOLS: Mapping[str, ToolSpec] = {
    "test_mutants": ToolSpec(
        "Test mutants",
        TestArguments,
        TestReport,
        "Test mutants and get what the tests miss: the counts, the mutation score, and the ten most telling survivors. "
        'Call it after a change with since="HEAD", for a file with paths, or with the ids of survivors after you have '
        "written a test for them. Without arguments it tests the whole project. The first call runs all tests once "
        "without mutants, and fails when they don't pass; later ones take as long as the tests that reach the mutants. "
        "Reports progress, and can be cancelled; what was found by then is kept. A first run of all tests goes on "
        "after that, for the next call.",
        runs_tests=True,
    ),
    "survivors": ToolSpec(
        "Survivors",
        SurvivorsArguments,
        Survivors,
        "The mutants that survived in the results that this server has, most telling first; runs nothing. Call "
        "test_mutants before. After an edit of any file, of tests, too, the results are left out, and counted as "
        "outdated.",
    ),
    "show_mutant": ToolSpec(
        "Show a mutant",
        ShowArguments,
        ShownMutant,
        "One mutant: its unified diff, its status and why, the tests that run the code, and the tests that killed it. "
        "Call it before you write a test for a survivor: the test must fail with the diff applied.",
    ),
    "list_mutants": ToolSpec(
        "List mutants",
        ListArguments,
        MutantList,
        "The mutants that there are, without running a test, sorted by place. To see what your tests miss, call "
        "test_mutants instead: this is for choosing some of many, or to see how a tool mutates a piece of code.",
    ),
    "ignore_mutant": ToolSpec(
        "Edit that ignores a mutant",
        IgnoreArguments,
        IgnoreEdit,
        "The edit of the source by which the mutation tool leaves a mutant out in its own way, such as the comment "
        "`# pragma: no mutate`. It is only returned: apply it yourself, if the user agrees. For a mutant that no test "
        "can tell from the original (an equivalent mutant), never to raise the score. `effect` says what else "
        "it leaves out.",
    ),
    "results": ToolSpec(
        "Last results",
        ResultsArguments,
        LastResults,
        "The last results of `msp-bridge run` on this machine, without testing: the counts, the score, and mutants by "
        "place. Call it first in a project that was tested before; test_mutants has newer ones.",
    ),
    "next_survivor": ToolSpec(
        "Next survivor",
        NextArguments,
        NextSurvivor,
        "The most telling survivor of all results, as show_mutant has it, with a hint where an assertion is missing; "
        "runs nothing. Call it, write the test, call test_mutants with its id, and call it again. Pass the ids "
        "that you leave for later as skip.",
    ),
    "accept_mutant": ToolSpec(
        "Accept a survivor",
        AcceptArguments,
        AcceptedMutant,
        "Writes a survivor to mutants-accepted.toml, with the reason: it counts neither for the score nor against it "
        "any more. For an equivalent mutant, and only if the user agrees. The source stays as it is, in contrast to "
        "ignore_mutant.",
        writes=True,
    ),
}


def _schema(model: type[BaseModel], mode: Any) -> dict[str, Any]:
    """The schema without titles, which repeat the names, and without defaults that stand for a missing argument."""
    schema: dict[str, Any] = _shortened(model.model_json_schema(mode=mode))
    schema.pop("description", None)
    return schema


def _shortened(schema: Any, *, names: bool = False) -> Any:
    """`names`: the keys are names of properties or definitions, any of which may be called `title`."""
    if isinstance(schema, list):
        return [_shortened(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _shortened(value, names=not names and key in ("properties", "$defs"))
        for key, value in schema.items()
        if names or not (key == "title" or (key == "default" and value in (None, [])))
    }


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
