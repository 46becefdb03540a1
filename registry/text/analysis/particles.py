"""Strip Korean particles and verb endings, so that 서버에서는 and 서버 are the same word."""

SHORTEST_STEM = 2
_MOST_ENDINGS = 3

_AFTER_CONSONANT = frozenset("은이을과")
_AFTER_VOWEL = frozenset("는가를와")
_AFTER_BOTH = frozenset("에의만")
_RIEUL = 8

_PARTICLES = """
에서 에서는 에서도 에서의 으로 으로는 으로도 으로서 으로써 로는 로도 로서 로써 까지 까지는 까지도 부터
부터는 에게 에게서 에는 에도 에만 한테 한테서 께서 처럼 같은 같이 만큼 보다 보다는 마다 이랑 하고 이나 이든
이든지 이라도 이라는 라는 이란 조차 마저 밖에 대로 이며 이고 인데 이지만 들이 들은 들을 들의 들도 이야
이에요 예요 입니다 인가 인가요 인지
"""
_VERB_ENDINGS = """
하기 하는 하게 하고 하던 하면 하며 하려 하려고 하려면 하자 하지 하지만 하니 하니까 하도록 하거나 한 한다
한다고 할 할까 할지 할게 할때 함 해 해서 해도 해야 해요 해줘 해줄래 해주세요 해봐 해보자 했다 했던 했지 했고
했는데 했는지 했더니 했더라 했어 했어요 했었지 했었는데 했습니다 합니다 합시다 했음 되는 되게 되던 되면 되지
되어 된 된다 될 됨 돼 돼서 돼요 됐다 됐던 됐지 됐는데 됐어 되었다 되었던 됩니다 시키는 시킨 시켜 시키기
"""
_ENDINGS = frozenset((*_PARTICLES.split(), *_VERB_ENDINGS.split()))
_LONGEST_FIRST = sorted({*map(len, _ENDINGS)}, reverse=True)


def is_syllable(char: str) -> bool:
    """Return True for one composed Hangul syllable."""
    return "가" <= char <= "힣"


def strip_particles(word: str) -> str:
    """Return a Hangul word without particles and verb endings, at least two syllables long."""
    for _ in range(_MOST_ENDINGS):
        ending = _ending_of(word)
        if not ending:
            break
        word = word[: -len(ending)]
    return word


def with_particles(syllable: str) -> tuple[str, ...]:
    """Return a one-syllable noun with each particle (키를, 키가 …), because the index has bigrams only."""
    fitting = _AFTER_VOWEL | {"로"} if _final(syllable) == 0 else _AFTER_CONSONANT
    return tuple(syllable + particle for particle in sorted(fitting | _AFTER_BOTH | {"도"}))


def _ending_of(word: str) -> str:
    room = len(word) - SHORTEST_STEM
    for length in _LONGEST_FIRST:
        if length <= room and word[-length:] in _ENDINGS:
            return word[-length:]
    return word[-1] if room > 0 and _is_particle(word[-1], after=word[-2]) else ""


def _is_particle(char: str, after: str) -> bool:
    """Return True for a particle that agrees with the sound before it; 전문가 and 매니저 end in none."""
    if char in _AFTER_BOTH:
        return True
    final = _final(after)
    if char == "로":
        return final in (0, _RIEUL)
    return char in (_AFTER_CONSONANT if final else _AFTER_VOWEL)


def _final(syllable: str) -> int:
    return (ord(syllable) - ord("가")) % 28 if is_syllable(syllable) else 0
