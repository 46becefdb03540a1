"""Recognise messages that are no evidence for what they name: requests to recall, lists of words. Pure."""

from __future__ import annotations

import re

from registry.text.analysis.particles import strip_particles
from registry.text.request.continuing import GOES_ON
from registry.text.request.request_words import is_request_word

_LONGEST_REQUEST = 300  # characters: a longer text tells something itself
_RECALLS = re.compile(
    r"""\b(?:what|where|which|how|why|when)\ did\ (?:we|i)\ (?:\w+\ )?
          (?:discuss|talk|decide|say|settle|agree|conclude|choose|pick|land|end)\b
      | \b(?:what|where|which|how|why|when)\ did\ we\ (?:\w+\ )?
          (?:do|fix|solve|resolve|use|handle|set|configure|implement|name|call|change|leave|find|learn|try|make)\b
      | \bdid\ we\ (?:ever\ )?(?:discuss|talk|decide|settle|agree)\b
      | \bdo\ (?:you|we)\ remember\b | \bremember\ when\ (?:we|i)\b
      | \b(?:we|i)\ (?:talked|spoke|chatted|discussed)\ (?:about\ )?.{0,60}\b(?:before|earlier|yesterday|last|ago)\b
      | \b(?:our|my|the|that|another|last|previous|earlier)\ (?:\w+\ ){0,3}(?:conversations?|chats?|discussions?)\b
      | \b(?:pull|bring|look|dig)\ up\ (?:our|my|the|what)\b
      | (?:지난번|저번|예전|이전|아까|그때|지난주|어제).{0,40}(?:얘기|이야기|말|논의|대화|상담|하던|했던|정한|정했)
      | (?:얘기|이야기|논의|대화|상담)(?:했|하던|한|나눈|나눴) | 기억\s*(?:나|하니|하냐)
      | (?:뭐|뭘|무엇|어떻게|얼마|몇|언제|어디|왜|누구).{0,20}
          (?:했|됐|였|랬|정했|잡았|썼)(?:었)?(?:지|더라|더라고|나)\s*[?.!]*$
      | (?:会話|相談|話)(?:した|していた|の続き)""",
    re.VERBOSE | re.IGNORECASE,
)
_LIST_WORDS = 15  # a list has so many words at least
_PLAIN = re.compile(r"[^\W\d_]+,?")


def asks_to_recall(text: str) -> bool:
    """Return True for a short message that asks for what was said in another conversation, or to continue one."""
    said = text.strip()
    return len(said) <= _LONGEST_REQUEST and bool(GOES_ON.search(said) or _RECALLS.search(said))


def is_word_list(text: str) -> bool:
    """Return True for keywords without sentences; a log or code, which has other characters, is none."""
    words = text.split()
    if len(words) < _LIST_WORDS or sum(bool(_PLAIN.fullmatch(word)) for word in words) < 0.9 * len(words):
        return False
    plain = [word.strip(",").lower() for word in words]
    return sum(is_request_word(word) or strip_particles(word) != word for word in plain) < 0.05 * len(words)
