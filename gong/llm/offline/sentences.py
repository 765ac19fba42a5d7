"""Sentences in English and Chinese: cut out, told apart, and weighed as facts. Pure, no model."""

from __future__ import annotations

import re
from collections import Counter
from math import log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LONGEST = 600
"""Characters of a sentence; what is longer is cut in the middle."""
_BULLET = re.compile(r"\A\s*(?:[-*•>]|\d{1,3}[.)])\s+")
_END = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bvs\.)(?<!\bNo\.)"
    r"[\"”’)]?\s+|(?<=[。！？；])\s*"
)
_LINE = 20_000
"""Characters of a line that are looked at, half of them at its end."""
_POLITE = (
    r"(?:(?:please|also|and|but|so|now|then|ok(?:ay)?|well|hi|hey|hello|by the way|btw)[,.!]?\s+"
    r"|(?:请你?|另外|还有|顺便)[，,]?)*"
)
_REMEMBER = re.compile(
    rf"{_POLITE}(?:(?:remember|memori[sz]e|keep in mind|bear in mind"
    r"|(?:don't|don’t|do not|never) forget"
    r"|fyi|for the record|for later|for reference)\b\s*(?:this\b\s*)?(?:that\b|[:,–-])?"
    r"|(?:note|notice|important|take note|make a note|n\.?b\.?)\s*(?:that\b|[:：,])"
    r"|(?:你要|帮我|要)?(?:记住|记下|记一下|记得|牢记|注意|备注|别忘了|不要忘记|备忘)(?:一点|这点)?[：:，,]?)"
    r"\s*(?P<fact>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_ASKS = re.compile(
    rf"{_POLITE}(?:who(?:se|m)?\b|what(?:'s|’s)?\b(?!\s+(?:i|we)\s+(?:need|want)\b)|which\b"
    r"|how (?:many|much|long|often|old|far|big|do|does|did|is|are|was|can)\b"
    r"|(?:where|when|why)(?:(?:'s|’s)|\s+(?:is|are|was|were|do|does|did|will|should|can|must|has|have))\b"
    r"|(?:do|did|can|could|would|will) (?:you|i|we)\b|(?:is|are|was|were|does|did) \w+.*\?)",
    re.IGNORECASE | re.DOTALL,
)
_MARKED = re.compile(r"[?？][\"”’)\s]*\Z")
_NOD = re.compile(
    r"(?:\b(?:ok(?:ay)?|right|got it|understood|alright|clear)|好吗|好吧|明白吗|行吗|知道了吗)"
    r"\s*[?？]\s*\Z",
    re.IGNORECASE,
)
_CHINESE_ASKS = re.compile(
    r"什么|哪|多少|几[个点号次天位]|谁|何时|何处|为何|怎么|怎样|如何|[吗呢]\s*\Z"
)
_NO_QUESTION = re.compile(r"(?:无论|不管|没什么|不论)")
_RULE = re.compile(
    r"\b(?:must|never|always|prefers?|preferably|don't|don’t|do not|should(?:n't|n’t)?|ought|avoid"
    r"|make sure|ensure|only use|use only|instead of|at most|at least|no more than|required?"
    r"|forbidden|not allowed|mandatory)\b|\A(?:please\s+)?(?:use|call|treat|assume)\b"
    r"|必须|不要|别(?!的|人|处)|总是|永远|从不|禁止|务必|优先|一律|只能|不得|不许|偏好|喜欢|应该|尽量",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decided?|decision|agreed|let's use|let us use|we(?:'ll| will) (?:use|go)"
    r"|we use|go(?:ing)? with|chose|chosen|settled on"
    r"|switch(?:ed)? to|stick(?:ing)? with|rather than)\b"
    r"|决定|采用|选择了?|改用|选用|敲定",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"\b(?:is|are|was) (?:called|named)\b|\bcalled\b|\bnamed\b|\bstands for\b|\bmeans\b"
    r"|\w\s*=\s*\S|叫做?|名为|等于",
    re.IGNORECASE,
)
_PRECISE = re.compile(
    r"\d|https?://|\w@\w|(?:^|\s|[`“\"(])[~.]?/\w|\w/\w+[./]|\w\.\w{1,4}\b|\b\w+[_-]\w+|\b[A-Z]{2,}\b|[`“\"‘]\w"
)
_STATES = re.compile(
    r"\b(?:is|are|am|was|were|be|has|have|had|does|means|lives?|runs|uses|used|listens|owns|works"
    r"|belongs|contains|expires|starts|begins|ends|will|likes?|needs?|called|named|stands|sits"
    r"|depends|comes|goes|wants?|knows?|handles|maintains|keeps|takes|costs|speaks|hates|loves)\b"
    r"|\w(?:'s|’s|'re|’re|'m|’m)\s|[是叫在为用有]|等于|位于|属于|：|=",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"(?:the|my|our|your|his|her|their|its|we|i|he|she|they|it|this|that|these|those|there|all|every"
    r"|each|both|no|nobody|everybody|everyone|an?|on|in|at|from|for|since|because|by|only|under|as"
    r"|one|two|three|most|some|many|if|when|while|after|before|until)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?:[A-Z][\w.-]*\s+){1,3}(?:and\s+[A-Z]\w*\s+)?[a-z]\w+(?:s|ed)\b")
_ORDER = re.compile(
    rf"{_POLITE}(?:(?:read|list|ls|run|execute|write|show|find|search|grep|replace|fix|add|make|create"
    r"|explain|tell|look|check|let's|think|update|delete|remove|open|print|count|try|go|do|give"
    r"|summari[sz]e|compare|test|build|install|rename|move|change|continue|help|implement|refactor"
    r"|cat|view|describe|say|put|save|set|start|stop|restart|commit|push|review|debug|verify|deploy|ship|release|skip|apply|undo|retry|revert|merge|rebase|format|lint)\b"
    r"|[$]|[帮读写列查找看改删加跑]|运行|执行|修复|创建|搜索|解释)",
    re.IGNORECASE,
)
_NOUN_FIRST = re.compile(
    r"(?:[\w./-]+\s+){1,4}?(?:is|are|was|were|has|have|means|=)(?=\s)", re.IGNORECASE
)
_CLAUSE = re.compile(
    r"\b(?:what|who|which|where|when|that|if|whether|how|why|all|there|because|until)\b",
    re.IGNORECASE,
)
_STOP_WORDS = """
    a an the this that these those of to in on at by for from with and or but so if then than as is
    are am was were be been being do does did done have has had having will would shall should can
    could may might must i you he she it we they me him her us them my your his its our their mine
    yours what which who whom whose where when why how many much tell told say said ask asked
    mention mentioned remember recall know again please now earlier before there here about just
    also not no yes ok name named called call note let give gave get got any some all one thing
    right answer question anything something ever still exactly use used conversation
"""
_STOP = frozenset(_STOP_WORDS.split())
_WORD = re.compile(r"[A-Za-z0-9À-ɏͰ-ӿ]+|[\u3400-\u9fff]+")
_HAN_STOP = re.compile(
    r"是什么|什么|多少|哪[个里些一儿]?|谁|几[个点号次天位]|何时|何处|怎么|如何|为什么|我们|你们|之前|刚才|告诉|说过|记得|记住"
    r"|请问|现在|[的是了吗呢吧啊么我你他她它说过请在有和与及把被就都也还要会能那这给让]"
)


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, each on one line, without bullets."""
    for line in text.split("\n"):
        if len(line) > _LINE:
            line = f"{line[: _LINE // 2]} … {line[-_LINE // 2 :]}"  # noqa: PLW2901
        for part in _END.split(_BULLET.sub("", line, count=1)):
            sentence = clip_text(part or "", _LONGEST)
            if sentence:
                yield sentence


def clip_text(text: str, longest: int) -> str:
    """Return text as one line of at most `longest` characters, cut in the middle."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    tail = max((longest - 3) // 2, 0)
    return f"{line[: max(longest - 3 - tail, 0)]} … {line[len(line) - tail :]}"[:longest]


def find_remembered_fact(text: str) -> str | None:
    """Return the fact in a request to remember it; None if it is no such request."""
    found = None if is_marked_question(text) else _REMEMBER.match(text.strip())
    return found["fact"].strip() if found else None


def is_marked_question(text: str) -> bool:
    """Tell whether a text ends with a question mark that asks for more than a nod."""
    return _MARKED.search(text) is not None and not _NOD.search(text)


def is_question(sentence: str) -> bool:
    """Tell whether a sentence asks something, with a question mark or without."""
    if is_marked_question(sentence):
        return True
    if _REMEMBER.match(sentence) or _NOD.search(sentence):
        return False
    if _CHINESE_ASKS.search(sentence):
        return not _NO_QUESTION.search(sentence)
    return _ASKS.match(sentence) is not None


def is_order(sentence: str) -> bool:
    """Tell whether a sentence wants something to be done: "Test it", but not "Test 4 is red"."""
    if _ORDER.match(sentence) is None:
        return False
    stated = _NOUN_FIRST.match(sentence)
    return stated is None or _CLAUSE.search(stated[0]) is not None


def is_rule(sentence: str) -> bool:
    """Return whether a sentence is a rule about how to do things, or not to."""
    return _RULE.search(sentence) is not None


def is_decision(sentence: str) -> bool:
    """Return whether a sentence is a decision."""
    return _DECISION.search(sentence) is not None


def is_precise(sentence: str) -> bool:
    """Tell whether a sentence holds a figure, a name of a thing, a path, an address or a quote."""
    return _PRECISE.search(sentence) is not None


PINNED = 6.0
"""Weight of a sentence with a request to remember it."""


def weigh_sentence(sentence: str) -> float:
    """Return how much a person's sentence is worth as a fact: 0 for orders and questions."""
    if is_question(sentence):
        return 0.0
    if _REMEMBER.match(sentence):
        return PINNED
    named = 1.0 if _NAMED.search(sentence) else 0.0
    precise = 0.5 if is_precise(sentence) else 0.0
    if is_rule(sentence):
        return 3.0 + named + precise
    if is_order(sentence):
        return 0.0
    states = _STATES.search(sentence) or _SUBJECT.match(sentence) or _NAME.match(sentence)
    if states and len(sentence) > 5:  # noqa: PLR2004 (shorter ones say nothing)
        return 2.0 + named + precise
    return (1.0 + precise if _count_words(sentence) > 3 else 0.0) + named  # noqa: PLR2004


def _count_words(sentence: str) -> int:
    """Return how many words a sentence has; two signs of Chinese are one."""
    runs = _WORD.findall(sentence)
    return sum((len(run) + 1) // 2 if run[0] >= "\u3400" else 1 for run in runs)


def extract_key_words(text: str) -> tuple[str, ...]:
    """Return the words of a text that carry meaning, each once, brought to one form."""
    return tuple(dict.fromkeys(map(_stem_word, iter_plain_words(text))))


def iter_plain_words(text: str) -> Iterator[str]:
    """Yield the words of a text that carry meaning, in small letters; Chinese ones in pairs."""
    for word in _WORD.findall(text.lower()):
        if "\u3400" <= word[0] <= "\u9fff":
            yield from _iter_pairs(word)
        elif word not in _STOP and (len(word) > 1 or word.isdigit()):
            yield word


def _iter_pairs(run: str) -> Iterator[str]:
    """Yield what stands for words in Chinese: neighbours, without what carries no meaning."""
    for part in _HAN_STOP.split(run):
        if part and len(part) == 1:
            yield part
        yield from (part[place : place + 2] for place in range(len(part) - 1))


_ENDINGS = ("ments", "ment", "ings", "ing", "edly", "ies", "ed", "es", "ly", "s", "e")
_SHORTEST = 3


def _stem_word(word: str) -> str:
    """Return a word without its ending, so that "listens" and "listening" are one."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST and not word.isdigit():
            return word[: -len(ending)]
    return word


def replace_figures(text: str) -> str:
    """Return a text with its figures taken out: what is said again and again has one shape."""
    return re.sub(r"\d+", "#", " ".join(text.lower().split()))


class WordRarity:
    """How rare words are among the texts that it was made of: 1 for the rarest, towards 0."""

    def __init__(self, texts: Iterable[tuple[str, ...]]) -> None:
        counts: Counter[str] = Counter()
        self._texts = 1
        for words in texts:
            self._texts += 1
            counts.update(words)
        self._counts = counts

    def rate_word(self, word: str) -> float:
        """Return the rarity of one word; a word that stands nowhere is as rare as can be."""
        texts = log(1 + self._texts)
        return max(1 - log(max(self._counts[word], 1)) / texts, 0.02)

    def rate_words(self, words: tuple[str, ...]) -> float:
        """Return the mean rarity of words; 0 when there are none."""
        return sum(map(self.rate_word, words)) / len(words) if words else 0.0
