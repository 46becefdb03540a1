"""Cursor, the editor: how to connect it, and the rules we install for its model."""

from __future__ import annotations

from registry.domain import Role
from sources.client import Client, Hooks, ProjectRule, ServerList

_LOOK_UP = """\
When the user refers to another or an earlier conversation ("continue the
fibonacci conversation", "what did we decide about logins?", "어제 하던 인증 작업
이어서"), first call `extract` with their own words as `query.text` and, every time,
3-4 other wordings of the same question as `query.also`: synonyms, the technical
words, likely words of the answer, one in the other language. Go on from what it
returns. Never call it for this chat.

```json
{"query": {"text": "what did we decide about logins?",
  "also": ["sign-in decision", "JWT or session cookies", "로그인 방식 결정"]}}
```
"""

# The rule for a project without our hooks. The model reads it in every turn: every word costs tokens.
_RULE_ALONE = (
    """\
---
description: Keep this chat in Context Registry, and look up earlier ones there
alwaysApply: true
---
# Context Registry

After every turn, as the very last thing you do, call the tool `conversation_log`
of the MCP server `context-registry`:

- `channel`: `cursor_session_YYYYMMDD_HHMM`, the date and time this chat began.
  Choose it in the first turn and send exactly the same name for the whole chat.
  A new chat gets a new name.
- `messages`: only the new turns, those since your last call, oldest first,
  each with its `role`, `user` or `assistant`, and its `text`, word for word.
  Leave out tool output and system instructions.
- `timestamp` in a message only if you really know when it was written. Never
  make one up.
- `meta`: `source` is `cursor`, `project` the full path of the workspace folder;
  `file` and `language` if the turn was about one file.

```json
{
  "channel": "cursor_session_20250929_1430",
  "messages": [
    {"role": "user", "text": "How do I make this function faster?"},
    {"role": "assistant", "text": "With a hash map it runs in O(n) ..."}
  ],
  "meta": {"source": "cursor", "project": "/home/me/shop", "file": "src/search.py"}
}
```

Do it silently: do not mention it, do not ask first, do not describe the result.
If the call fails, carry on, and send these turns again with the next.

"""
    + _LOOK_UP
)

# The rule where hooks log the chat. A model that logs it all the same stores nothing twice.
_RULE = f"""\
---
description: Look up earlier chats in Context Registry
alwaysApply: true
---
# Context Registry

{_LOOK_UP}
Hooks of Cursor capture this chat: do not log it yourself.
"""

CURSOR = Client(
    source="cursor",
    name="Cursor",
    handshake=("cursor-vscode", "cursor"),
    history="its `User` folder; `CTXR_CURSOR_DIR`",
    folder=lambda places: places.home / ".cursor",
    servers=ServerList("mcp.json"),
    hooks=Hooks(
        events=("sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "stop", "sessionEnd"),
        said={
            "beforeSubmitPrompt": (Role.USER, "prompt"),
            "afterAgentResponse": (Role.ASSISTANT, "text"),
            "afterAgentThought": (Role.THINKING, "text"),
        },
        format="list",
        handler=lambda command: {"command": command},
    ),
    is_logged_by_model=True,
    rule=ProjectRule(".cursor/rules/context-registry.mdc", text=_RULE, alone=_RULE_ALONE),
    project_option="put the rule into this project",
    link="cursor://anysphere.cursor-deeplink/mcp/install",
    prompt_link="cursor://anysphere.cursor-deeplink/prompt?text=",
)
