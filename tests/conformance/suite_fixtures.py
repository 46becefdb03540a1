"""Tools, resources and prompts named `test_*` that the conformance suite expects on the server.

Names and answers are specified by the suite's scenarios.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from mcp.server import MCPServer, Server, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.types import (
    AudioContent,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    EmptyResult,
    GetPromptRequestParams,
    ImageContent,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    RequestParams,
    SetLevelRequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from pydantic import Field

from tests.conformance.suite_dialogues import add_dialogues
from tests.conformance.suite_forms import add_forms

RED_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
ONE_SAMPLE = base64.b64encode(
    b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\2\0\0\0\0\0"
).decode()
PAUSE_S = 0.02


def text(words: str) -> TextContent:
    return TextContent(text=words)


def document(uri: str, words: str, mime_type: str = "text/plain") -> EmbeddedResource:
    """Return a resource embedded in an answer."""
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=words))


CONTENT_TOOLS: Mapping[str, Sequence[ContentBlock]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [ImageContent(data=RED_PIXEL, mime_type="image/png")],
    "test_audio_content": [AudioContent(data=ONE_SAMPLE, mime_type="audio/wav")],
    "test_embedded_resource": [document("test://embedded-resource", "This is an embedded resource content.")],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        ImageContent(data=RED_PIXEL, mime_type="image/png"),
        document("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ],
}


def add_suite_fixtures(product: Server[Any]) -> None:
    """Add everything the suite asks for, answered by an SDK server."""
    fixtures: MCPServer[Any] = MCPServer("fixtures")
    add_content_tools(fixtures)
    add_talking_tools(fixtures)
    add_dialogues(fixtures)
    add_forms(fixtures)
    add_resources(fixtures)
    add_prompts(fixtures)
    for method, kind in LISTS.items():
        add_to_list(product, fixtures, method, kind)
    for method, params in PUBLIC_LABEL.items():
        add_named(product, fixtures, method, params)
    add_handshake_era_methods(product)
    product.middleware += [one for one in fixtures.middleware if type(one) not in map(type, product.middleware)]
    listen = fixtures._lowlevel_server.get_request_handler("subscriptions/listen")
    assert listen
    product.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, listen.handler)


LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resource_templates",
}
PUBLIC_LABEL: Mapping[str, type[RequestParams]] = {
    "tools/call": CallToolRequestParams,
    "prompts/get": GetPromptRequestParams,
    "resources/read": ReadResourceRequestParams,
}


def add_to_list(product: Server[Any], fixtures: MCPServer[Any], method: str, kind: str) -> None:
    """Append the fixtures to one of the product's lists."""
    ours, theirs = product.get_request_handler(method), fixtures._lowlevel_server.get_request_handler(method)
    assert ours
    assert theirs

    async def both(ctx: ServerRequestContext[Any, Any], params: PaginatedRequestParams) -> Any:
        first, second = await ours.handler(ctx, params), await theirs.handler(ctx, params)
        return first.model_copy(update={kind: [*getattr(first, kind), *getattr(second, kind)]})  # type: ignore[union-attr]

    product.add_request_handler(method, PaginatedRequestParams, both)


def add_named(product: Server[Any], fixtures: MCPServer[Any], method: str, params: type[RequestParams]) -> None:
    """Pass names with the suite's prefixes to the fixtures."""
    ours, theirs = product.get_request_handler(method), fixtures._lowlevel_server.get_request_handler(method)
    assert ours
    assert theirs

    async def either(ctx: ServerRequestContext[Any, Any], asked: Any) -> Any:
        name = str(getattr(asked, "name", "") or getattr(asked, "uri", ""))
        return await (theirs if name.startswith(("test_", "test:")) else ours).handler(ctx, asked)

    product.add_request_handler(method, params, either)


def add_content_tools(server: MCPServer[Any]) -> None:
    """Add tools with constant content, and one that always fails."""
    for name, content in CONTENT_TOOLS.items():

        def answer(content: Sequence[ContentBlock] = content) -> CallToolResult:
            return CallToolResult(content=list(content))

        server.add_tool(answer, name=name, description=f"Conformance fixture {name}")

    @server.tool()
    def test_error_handling() -> CallToolResult:
        """Always fail."""
        return CallToolResult(content=[text("This tool intentionally returns an error for testing")], is_error=True)

    @server.tool()
    def test_x_mcp_header(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    ) -> str:
        """Take an argument that travels in an HTTP header as well."""
        return region


def add_talking_tools(server: MCPServer[Any]) -> None:
    """Add tools that send notifications while they run."""

    async def log_three_lines(ctx: Context[Any]) -> str:
        for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await ctx.info(line)
            await asyncio.sleep(PAUSE_S)
        return "done"

    for name in ("test_tool_with_logging", "test_logging_tool"):
        server.add_tool(log_three_lines, name=name, description="Log three lines")

    @server.tool()
    async def test_tool_with_progress(ctx: Context[Any]) -> str:
        """Report progress three times."""
        for progress in (0, 50, 100):
            await ctx.report_progress(progress, 100)
            await asyncio.sleep(PAUSE_S)
        return "done"

    @server.tool()
    async def test_trigger_tool_change(ctx: Context[Any]) -> str:
        """Announce a changed list of tools."""
        await ctx.notify_tools_changed()
        return "done"

    @server.tool()
    async def test_trigger_prompt_change(ctx: Context[Any]) -> str:
        """Announce a changed list of prompts."""
        await ctx.notify_prompts_changed()
        return "done"


def add_resources(server: MCPServer[Any]) -> None:
    """Add a text, an image, a template, and a resource for subscriptions."""

    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        """A fixed text."""
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        """A fixed picture."""
        return base64.b64decode(RED_PIXEL)

    @server.resource("test://watched-resource", mime_type="text/plain")
    def watched_resource() -> str:
        """A text one may subscribe to."""
        return "Watched resource content"

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> dict[str, Any]:
        """The data of one id."""
        return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


def add_prompts(server: MCPServer[Any]) -> None:
    """Add prompts with and without arguments, with a document, and with an image."""

    @server.prompt()
    def test_simple_prompt() -> str:
        """A prompt without arguments."""
        return "This is a simple prompt for testing."

    @server.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """A prompt with two arguments."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt()
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[ContentBlock]:
        """A prompt that carries a document."""
        return [
            document(resourceUri, "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ]

    @server.prompt()
    def test_prompt_with_image() -> list[ContentBlock]:
        """A prompt that carries a picture."""
        return [
            ImageContent(data=RED_PIXEL, mime_type="image/png"),
            text("Please analyze the image above."),
        ]


def add_handshake_era_methods(server: Server[Any]) -> None:
    """Add methods of 2025-11-25 that the SDK serves only if they are registered."""

    async def accept(ctx: ServerRequestContext[Any, Any], params: RequestParams) -> EmptyResult:
        return EmptyResult()

    missing: Mapping[str, type[RequestParams]] = {
        "logging/setLevel": SetLevelRequestParams,
        "resources/subscribe": SubscribeRequestParams,
        "resources/unsubscribe": UnsubscribeRequestParams,
    }
    for method, params in missing.items():
        if server.get_request_handler(method) is None:
            server.add_request_handler(method, params, accept)
