"""Convert the token counts of all clients to one set of names. Pure."""

from sources.kit.loose_json import mapping

_CLIENT_NAMES = {  # all names that clients use for a count
    "input_tokens": "input_tokens inputTokens input inputOther tokensIn prompt_tokens promptTokenCount",
    "output_tokens": "output_tokens outputTokens output tokensOut completion_tokens candidatesTokenCount",
    "cache_read_input_tokens": "cache_read_input_tokens cached_input_tokens cacheReadTokens cachedReadTokens "
    "cacheReads cache_read_tokens cachedContentTokenCount cacheRead inputCacheRead cached read",
    "cache_creation_input_tokens": "cache_creation_input_tokens cacheCreationTokens cacheWriteTokens cacheWrites "
    "cache_write_tokens cacheWrite inputCacheCreation write",
    "reasoning_tokens": "reasoning_output_tokens reasoningTokens reasoning thoughtsTokenCount thoughts",
}
_OUR_NAME = {name: our_name for our_name, names in _CLIENT_NAMES.items() for name in names.split()}


def usage_of(given: object, *, cache_in_input: bool = False, excludes_reasoning: bool = False) -> dict[str, int]:
    """Return a client's token counts by our names, with input excluding the cache and output including reasoning.

    The flags say that the client counts differently: its input includes the cache, its output excludes reasoning.
    """
    counts = mapping(given).items()
    usage = {_OUR_NAME[name]: count for name, count in counts if name in _OUR_NAME and isinstance(count, int)}
    if cache_in_input and "input_tokens" in usage:
        cached = usage.get("cache_read_input_tokens", 0) + usage.get("cache_creation_input_tokens", 0)
        usage["input_tokens"] = max(usage["input_tokens"] - cached, 0)
    if excludes_reasoning and "reasoning_tokens" in usage:
        usage["output_tokens"] = usage.get("output_tokens", 0) + usage["reasoning_tokens"]
    return usage
