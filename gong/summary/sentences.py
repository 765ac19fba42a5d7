"""Sentences in English and Chinese: split, told apart, and weighed as facts. Pure, no model.

The first line that fits decides what a sentence of a person weighs:

| it is | example | weight |
|---|---|---|
| a question | which port is it | 0 |
| to be remembered | note: the port is 8143 | 6 |
| a rule | never push to main | 3 |
| an order | check the port | 0 |
| a statement | the port is free | 2 |
| four words or more | fine by all of us | 1 |

A name adds 1; a figure, path, address or quotation adds 0.5 where the weight is not 0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_MAX_SENTENCE_CHARS = 600
_MAX_LINE_CHARS = 20_000
_BULLET = re.compile(r"\A\s*(?:[-*•>]|\d{1,3}[.)])\s+")
_END = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bvs\.)(?<!\bNo\.)"
    r"[\"”’)]?\s+|(?<=[。！？；])\s*"
)
_POLITE = (
    r"(?:(?:please|also|and|but|so|now|then|ok(?:ay)?|well|hi|hey|hello|by the way|btw)[,.!]?\s+"
    r"|(?:请你?|另外|还有|顺便)[，,]?)*"
)
_REMEMBER = _compile_pattern(
    rf"{_POLITE}(?:(?:remember|memori[sz]e|(?:keep|bear) in mind|(?:don['’]t|do not|never) forget"
    r"|fyi|for the record|for later|for reference)\b\s*(?:this\b\s*)?(?:that\b|[:,–-])?"
    r"|(?:note|notice|important|take note|make a note|n\.?b\.?)\s*(?:that\b|[:：,])"
    r"|(?:你要|帮我|要)?(?:记[住得]|记下|记一下|牢记|注意|备注|别忘了|不要忘记|备忘)(?:一点|这点)?[：:，,]?)"
    r"\s*(?P<fact>\S.*)"
)
_ASKS = _compile_pattern(
    rf"{_POLITE}(?:who(?:se|m)?\b|what(?:['’]s)?\b(?!\s+(?:i|we)\s+(?:need|want)\b)|which\b"
    r"|how (?:many|much|long|often|old|far|big|do|does|did|is|are|was|can)\b"
    r"|(?:where|when|why)(?:['’]s|\s+(?:is|are|was|were|do|does|did|will|should|can|must|has|have))\b"
    r"|(?:do|did|can|could|would|will) (?:you|i|we)\b|(?:is|are|was|were|does|did) \w+.*\?)"
)
_MARKED = re.compile(r"[?？][\"”’)\s]*\Z")
_NOD = _compile_pattern(
    r"(?:\b(?:ok(?:ay)?|right|got it|understood|alright|clear)|好吗|好吧|明白吗|行吗|知道了吗)"
    r"\s*[?？]\s*\Z"
)
_CHINESE_ASKS = re.compile(
    r"什么|哪|多少|几[个点号次天位]|谁|何时|何处|为何|怎么|怎样|如何|[吗呢]\s*\Z"
)
_NO_QUESTION = re.compile("无论|不管|没什么|不论")
_RULE = _compile_pattern(
    r"\b(?:must|never|always|prefers?|preferably|don['’]t|do not|should(?:n['’]t)?|ought|avoid"
    r"|make sure|ensure|only use|use only|instead of|at most|at least|no more than|required?"
    r"|forbidden|not allowed|mandatory)\b|\A(?:please\s+)?(?:use|call|treat|assume)\b"
    r"|必须|不要|别(?!的|人|处)|总是|永远|从不|禁止|务必|优先|一律|只能|不得|不许|偏好|喜欢|应该|尽量"
)
_DECISION = _compile_pattern(
    r"\b(?:decided?|decision|agreed|let's use|let us use|we(?:'ll| will) (?:use|go)|we use"
    r"|go(?:ing)? with|chose|chosen|settled on|switch(?:ed)? to|stick(?:ing)? with|rather than)\b"
    r"|决定|采用|选择了?|改用|选用|敲定"
)
_NAMED = _compile_pattern(r"\b(?:called|named|stands for|means)\b|\w\s*=\s*\S|叫做?|名为|等于")
_PRECISE = re.compile(
    r"\d|https?://|\w@\w|(?:^|\s|[`“\"(])[~.]?/\w|\w/\w+[./]|\w\.\w{1,4}\b|\b\w+[_-]\w+"
    r"|\b[A-Z]{2,}\b|[`“\"‘]\w"
)
_STATES = _compile_pattern(
    r"\b(?:is|are|am|was|were|be|has|have|had|does|means|lives?|runs|uses|used|listens|owns|works"
    r"|belongs|contains|expires|starts|begins|ends|will|likes?|needs?|stands|depends|wants?|knows?"
    r"|maintains|keeps|takes|costs)\b|\w['’](?:s|re|m)\s|[是叫在为用有]|等于|位于|属于|：|="
)
_ORDER = _compile_pattern(
    rf"{_POLITE}(?:(?:read|list|ls|run|execute|write|show|find|search|grep|replace|fix|add|make"
    r"|create|explain|tell|look|check|let's|think|update|delete|remove|open|print|count|try|go|do"
    r"|give|summari[sz]e|compare|test|build|install|rename|move|change|continue|help|implement"
    r"|refactor|cat|view|describe|say|put|save|set|start|stop|restart|commit|push|review|debug"
    r"|verify|deploy|ship|release|skip|apply|undo|retry|revert|merge|rebase|format|lint)\b"
    r"|[$]|[帮读写列查找看改删加跑]|运行|执行|修复|创建|搜索|解释)"
)
_NOUN_FIRST = _compile_pattern(r"(?:[\w./-]+\s+){1,4}?(?:is|are|was|were|has|have|means|=)(?=\s)")
_CLAUSE = _compile_pattern(
    r"\b(?:what|who|which|where|when|that|if|whether|how|why|all|there|because|until)\b"
)
_WORD = re.compile(r"[\u3400-\u9fff]{1,2}|[^\W\u3400-\u9fff]+")
_FEW_WORDS = 3
_SHORT_CHARS = 5

PINNED = 6.0
"""Weight of a sentence that somebody wanted to have remembered."""


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, each on one line of at most 600 characters, no bullets."""
    for whole in text.split("\n"):
        line = whole
        if len(line) > _MAX_LINE_CHARS:
            line = f"{line[: _MAX_LINE_CHARS // 2]} … {line[-_MAX_LINE_CHARS // 2 :]}"
        parts = _END.split(_BULLET.sub("", line, count=1))
        yield from filter(None, (clip_text(part or "", _MAX_SENTENCE_CHARS) for part in parts))


def clip_text(text: str, limit: int) -> str:
    """Return text as one line of at most `limit` characters, cut in the middle."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    tail = max((limit - 3) // 2, 0)
    return f"{line[: max(limit - 3 - tail, 0)]} … {line[len(line) - tail :]}"[:limit]


def find_remembered_fact(text: str) -> str | None:
    """Return what somebody wants to have remembered; None where no such wish is said."""
    match = None if _is_marked_question(text) else _REMEMBER.match(text.strip())
    return match["fact"].strip() if match else None


def _is_marked_question(text: str) -> bool:
    """Tell whether a text ends with a question mark that asks for more than a nod."""
    return _MARKED.search(text) is not None and not _NOD.search(text)


def is_question(sentence: str) -> bool:
    """Tell whether a sentence asks something, with a question mark or without."""
    if _is_marked_question(sentence):
        return True
    if _REMEMBER.match(sentence) or _NOD.search(sentence):
        return False
    if _CHINESE_ASKS.search(sentence):
        return not _NO_QUESTION.search(sentence)
    return _ASKS.match(sentence) is not None


def is_rule(sentence: str) -> bool:
    """Return whether a sentence is a rule about how to do things, or not to."""
    return _RULE.search(sentence) is not None


def is_decision(sentence: str) -> bool:
    """Return whether a sentence is a decision."""
    return _DECISION.search(sentence) is not None


def is_precise(sentence: str) -> bool:
    """Tell whether a sentence holds a figure, a name of a thing, a path, an address or a quote."""
    return _PRECISE.search(sentence) is not None


def weigh_sentence(sentence: str) -> float:
    """Return how much a person's sentence is worth as a fact: 0 for orders and questions."""
    if is_question(sentence):
        return 0.0
    if _REMEMBER.match(sentence):
        return PINNED
    weight = 1.0 if len(_WORD.findall(sentence)) > _FEW_WORDS else 0.0
    if is_rule(sentence):
        weight = 3.0
    elif _ORDER.match(sentence):
        # "Test it" is an order, "Test 4 is red" states something
        stated = _NOUN_FIRST.match(sentence)
        if stated is None or _CLAUSE.search(stated[0]):
            return 0.0
        weight = 2.0
    elif _STATES.search(sentence) and len(sentence) > _SHORT_CHARS:
        weight = 2.0
    if _NAMED.search(sentence):
        weight += 1
    return weight + 0.5 * (weight > 0 and is_precise(sentence))


def replace_figures(text: str) -> str:
    """Return a text with its figures taken out: what is said again and again has one shape."""
    return re.sub(r"\d+", "#", " ".join(text.lower().split()))
