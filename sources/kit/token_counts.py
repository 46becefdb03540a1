"""Read the token counts of all clients by one set of names. Pure."""

from sources.kit.loose_json import mapping

_THEIR_NAMES = {  # of each count, as the clients write it
    "input_tokens": "input_tokens inputTokens input inputOther tokensIn prompt_tokens promptTokenCount",
    "output_tokens": "output_tokens outputTokens output tokensOut completion_tokens candidatesTokenCount",
    "cache_read_input_tokens": "cache_read_input_tokens cached_input_tokens cacheReadTokens cachedReadTokens "
    "cacheReads cache_read_tokens cachedContentTokenCount cacheRead inputCacheRead cached read",
    "cache_creation_input_tokens": "cache_creation_input_tokens cacheCreationTokens cacheWriteTokens cacheWrites "
    "cache_write_tokens cacheWrite inputCacheCreation write",
    "reasoning_tokens": "reasoning_output_tokens reasoningTokens reasoning thoughtsTokenCount thoughts",
}
_OURS = {theirs: ours for ours, names in _THEIR_NAMES.items() for theirs in names.split()}


def usage_of(given: object, *, cache_in_input: bool = False, reasoning_beside_output: bool = False) -> dict[str, int]:
    """Return a client's token counts by our names.

    `input_tokens` never include those from a cache, `output_tokens` always include the reasoning. The two flags tell
    where the client counts otherwise.
    """
    counts = mapping(given).items()
    usage = {_OURS[theirs]: count for theirs, count in counts if theirs in _OURS and isinstance(count, int)}
    if cache_in_input and "input_tokens" in usage:
        cached = usage.get("cache_read_input_tokens", 0) + usage.get("cache_creation_input_tokens", 0)
        usage["input_tokens"] = max(usage["input_tokens"] - cached, 0)
    if reasoning_beside_output and "reasoning_tokens" in usage:
        usage["output_tokens"] = usage.get("output_tokens", 0) + usage["reasoning_tokens"]
    return usage
