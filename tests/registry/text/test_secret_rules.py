"""Secrets are masked whole, however long and however quoted; code, logs and prose without any stay as they are."""

import random
import string
import time
from pathlib import Path

import pytest

from benchmarks.secrets.pieces import is_missed, read_pieces
from registry.text.privacy.masking import mask_value
from registry.text.privacy.rules import OWN_RULES, load_rules, use_own_rules
from registry.text.privacy.secrets import mask_secrets

PIECES = list(read_pieces(Path(__file__).parents[3] / "benchmarks/secrets/texts"))


def made(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "4fX9" + "".join(random.Random(length).choices(letters, k=length - 4))


def masked(text: str) -> str:
    return mask_secrets(text, b"key")


def test_at_most_one_planted_secret_in_twenty_is_missed() -> None:
    planted = [piece for piece in PIECES if piece.secrets]
    missed = [piece.text for piece in planted if is_missed(piece, masked(piece.text))]
    assert len(planted) == 340
    assert len(missed) <= len(planted) / 20, missed


def test_masking_leaves_code_logs_and_prose_without_secrets_as_they_are() -> None:
    innocent = [piece.text for piece in PIECES if not piece.secrets]
    assert len(innocent) > 200
    assert [masked(text) for text in innocent] == innocent


@pytest.mark.parametrize("length", [12, 64, 300, 301, 2000, 10_000])
@pytest.mark.parametrize(
    "noted",
    [
        "API_TOKEN=%s",
        "access_token: %s",
        '{"refresh_token": "%s", "expires_in": 3600}',
        "--token %s --now",
        "Secret Key: %s",
        "the client secret is %s",
        "토큰은 %s 입니다",
        "GET /reset?token=%s&page=2",
        "Cookie: theme=dark; session=%s; a=1",
        "Authorization: Bearer %s",
        "https://ann:%s@shop.example",
        "<api_token>%s</api_token>",
        "export API_TOKEN='%s'",
    ],
)
def test_a_secret_of_any_length_is_masked_whole(noted: str, length: int) -> None:
    secret = made(max(length, 24) if "Cookie" in noted or "?" in noted or "Bearer" in noted else length)
    text = masked(noted % secret)
    assert not [at for at in range(len(secret) - 11) if secret[at : at + 12] in text]
    before, after = noted.split("%s")
    assert text.startswith(before)
    assert text.endswith(after)


BODY = ["MIIEpAIBAAKCAQEA" + made(48), made(64, string.ascii_letters + "+/0189"), made(64), "dGhlIGVuZA=="]
BLOCK = ["-----BEGIN RSA PRIVATE KEY-----", *BODY, "-----END RSA PRIVATE KEY-----"]


@pytest.mark.parametrize(
    "quoted",
    [
        "> {line}",
        "# {line}",
        "- {line}",
        "+{line}",
        "    {line}",
        "keys/id_rsa:{number}:{line}",
        "{number}:{line}",
        "| {number} | {line} |",
        '"{line}\\n"',
        "     {number}\t{line}",
        " * {line}",
        "// {line}",
    ],
)
@pytest.mark.parametrize("last", [6, 4], ids=["whole", "cut"])
def test_a_private_key_is_masked_in_whatever_it_is_quoted(quoted: str, last: int) -> None:
    lines = [quoted.format(line=line, number=number) for number, line in enumerate(BLOCK[:last], 1)]
    text = masked("\n".join(["look:", *lines, "and then?"]))
    assert [line for line in BODY[: last - 1] if line[:12] in text] == []
    assert text.startswith("look:\n")
    assert text.endswith("and then?")


def test_a_secret_is_masked_in_lists_and_in_names_of_fields_too() -> None:
    token = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
    masked = mask_value({token: [1, (token, None)], "ok": True}, b"key")
    mark = next(iter(masked))
    assert masked == {mark: [1, [mark, None]], "ok": True}
    assert mark.startswith("[secret:github-token:")


def test_a_private_key_in_a_kubeconfig_is_masked_and_the_certificate_stays() -> None:
    import base64

    key = base64.b64encode("\n".join(BLOCK).encode()).decode()
    certificate = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMIIB").decode()
    text = masked(f"client-certificate-data: {certificate}\nclient-key-data: {key}\n")
    assert certificate in text
    assert key[:40] not in text


@pytest.mark.parametrize(
    "repeated", ["token=", "id/pw: 11111111111111111111", "password ", "-----BEGIN PRIVATE KEY-----\n"]
)
def test_a_hostile_text_is_searched_in_time(repeated: str) -> None:
    start = time.process_time()
    masked(repeated * (50_000 // len(repeated)))
    assert time.process_time() - start < 2


def test_a_user_adds_rules_in_a_file_without_code(tmp_path: Path) -> None:
    (tmp_path / OWN_RULES).write_text("keys = [['acme-key', 'acme_', '[a-z0-9]{16,}']]\n[names]\nsecret = ['badge']\n")
    said = f"acme_{'abcdefg7' * 3} and badge: {made(16)}"
    assert masked(said) == said
    use_own_rules(tmp_path)
    try:
        assert masked(said).count("[secret:") == 2
        assert "[secret:acme-key:" in masked(said)
    finally:
        use_own_rules(tmp_path / "none")
    assert load_rules().digest
