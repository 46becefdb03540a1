"""remember: store sentences for every later chat of a project, or of all projects.

They are messages of a separate channel: search, extract, export, deletion and tokens treat them like any message.
"""

from typing import Annotated, Any

from pydantic import Field

from orchestrator.answer.delivery import fits, largest_fitting
from orchestrator.answer.digests.corrections import repeated_corrections
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import GeneralState, Operation, Run, Steps
from orchestrator.tool import Caller, Effect, Outcome, Tool, ToolArguments
from registry.access import Level
from registry.domain import Message, Role, now
from registry.errors import NotFound
from registry.ingest.from_tool import ingest_from_tool
from registry.project import REMEMBERED
from registry.storage.conversations.message_windows import channel_to_remember_in, latest_prompts, remembered
from registry.storage.conversations.messages import delete_message, get_message
from registry.storage.database import WriteTransaction
from registry.storage.exchange.edits import DELETED, record_edits
from registry.storage.safety.masking import masked

MAX_PROMPT = 500  # characters of a message that may be a correction
PROMPTS_READ = 3000  # latest such messages
Sentence = Annotated[str, Field(min_length=1, max_length=500)]  # characters


class RememberQuery(QueryShape):
    """A sentence to store; without one, the valid sentences are listed."""

    text: Sentence | None = None
    project: str | None = Field(None, description="folder; null: everywhere")
    replaces: str | None = Field(None, description="id of a sentence that is no longer valid")


class RememberRequest(Request):
    operation = "remember"
    query: RememberQuery


def remember(tx: WriteTransaction, run: Run, request: RememberRequest, _state: GeneralState) -> dict[str, Any]:
    """Store a sentence if it is new, delete the one it replaces, and return all that are valid.

    Without a sentence, also propose the corrections that the user repeated; they are not stored.
    """
    text, project = request.query.text, request.query.project
    if request.query.replaces:
        _delete_sentence(tx, request.query.replaces)
    known = [one["text"] for one in remembered(tx, project) if bool(one["project"]) == bool(project)]
    if text and masked(tx, {"text": text})["text"] not in known:
        about = {"title": "Remembered", **({"project": project} if project else {})}
        message = Message(Role.USER, text, now())
        into = channel_to_remember_in(tx, project)
        name, _ = ingest_from_tool(tx, into, [message], source=REMEMBERED, metadata=about, received_at=now())
        run.recorder.channel = name
    run.recorder.explain(kept=bool(text), replaced=request.query.replaces)
    valid = remembered(tx, project)
    if text or request.query.replaces:
        return {"remembered": valid}
    prompts = latest_prompts(tx, project, MAX_PROMPT, PROMPTS_READ)
    return {"remembered": valid, "proposed": repeated_corrections(prompts, [one["text"] for one in valid])}


def _delete_sentence(tx: WriteTransaction, sentence_id: str) -> None:
    """Delete a sentence here and, by the exchange, in other registries. Raises NotFound for another message."""
    sentence = get_message(tx, sentence_id, include_deleted=True)
    if sentence.source != REMEMBERED:
        raise NotFound("No such sentence", f"No sentence {sentence_id!r} is remembered")
    record_edits(tx, sentence.channel_number, {DELETED: True}, None, sentence.number)
    delete_message(tx, sentence.id)


class RememberArguments(ToolArguments):
    text: Annotated[Sentence, Field(description="one sentence, as the user said it")]
    everywhere: Annotated[bool, Field(description="not only in this project")] = False
    replaces: Annotated[str | None, Field(description="id of a sentence that holds no longer")] = None

    def request(self, caller: Caller) -> RememberRequest:
        project = None if self.everywhere else caller.project
        query = RememberQuery(text=self.text, project=project, replaces=self.replaces)
        return RememberRequest(query=query, source=caller.source)

    async def result(self, outcome: Outcome, caller: Caller) -> dict[str, Any]:
        """Return the newest sentences that fit the client's limit, and the number of the others."""
        every = outcome["remembered"]

        def newest(count: int) -> dict[str, Any]:
            left_out = {"left_out": len(every) - count} if count < len(every) else {}
            return {"remembered": every[len(every) - count :], **left_out}

        return newest(largest_fitting(len(every), lambda count: fits(caller.limit, newest(count))))


REMEMBER_TOOL = Tool(
    name="remember",
    title="Remember a sentence",
    description="Keep one sentence that every later chat of this project is told at its start. Only when the user asks "
    "('remember that …', 'from now on …', '앞으로는 …'). Answers with all that hold.",
    effect=Effect.UPDATES,
    arguments=RememberArguments,
    returns=["remembered", "left_out"],
    example={"text": "<the sentence>"},
)
OPERATION = Operation(
    request=RememberRequest,
    level=Level.WRITE,
    steps=Steps[RememberRequest, None](write=remember),
    tools=[REMEMBER_TOOL],
    labels={"replaces": ("replaces", "대체한 문장")},
)
