"""Display names of models."""

from __future__ import annotations

from registry.text.model_names import model_name


def test_model_ids_become_the_usual_names() -> None:
    cases: list[tuple[str, str]] = [
        ("claude-4.5-opus-high-thinking", "Claude Opus 4.5 (Thinking)"),
        ("claude-4-sonnet", "Claude Sonnet 4"),
        ("claude-4-sonnet-low-thinking", "Claude Sonnet 4 (Low, Thinking)"),
        ("gpt-4o", "GPT-4o"),
        ("gemini-2.5-pro", "Gemini 2.5 Pro"),
        ("claude-opus-4-5-20251101", "Claude Opus 4.5"),
        ("claude-sonnet-4-20250514", "Claude Sonnet 4"),
        ("gpt-5.1-codex-max", "GPT-5.1 Codex Max"),
        ("gpt-5-high", "GPT-5 (High)"),
        ("gemini-3-pro-preview", "Gemini 3 Pro Preview"),
        ("anthropic/claude-haiku-4-5", "Claude Haiku 4.5"),
        ("Qwen/Qwen3-4B", "Qwen/Qwen3-4B"),
        ("default", "default"),
        ("", ""),
    ]
    for model_id, name in cases:
        assert model_name(model_id) == name
