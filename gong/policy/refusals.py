"""The texts of refusals, for the model and for people: English, or Chinese by locale (C19)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Locale = Literal["en", "zh"]

REFUSAL = "错误: 危险命令已被拦截。此命令可能造成不可逆损害。"
"""The first line of the refusal of a dangerous command in Chinese (row M097)."""
ENGLISH_REFUSAL = "Error: dangerous command blocked. Its damage may be irreversible."
_DANGER: dict[Locale, str] = {"en": ENGLISH_REFUSAL, "zh": REFUSAL}
_ADVICE: dict[Locale, str] = {
    "en": "Find another way, or ask the user to run it.",
    "zh": "请换一种做法, 或请用户自己运行。",
}
DECLINED: dict[Locale, str] = {
    "en": "The user refused this call.",
    "zh": "用户拒绝了此操作",
}
"""The first line of the result when a person said no (row M177)."""
_REASON: dict[Locale, str] = {"en": "Reason: {}", "zh": "原因: {}"}
_TEXTS: dict[str, dict[Locale, str]] = {
    "rule": {
        "en": "Not run: the rule {rule} denies it.",
        "zh": "未运行: 规则 {rule} 禁止此操作。",
    },
    "plan": {
        "en": "Not run: plan mode only reads, and this call may change something ({why}). "
        "Describe what you would do instead.",
        "zh": "未运行: 计划模式只允许读取, 而此操作可能造成改动 ({why})。请改为说明计划。",
    },
    "locked": {
        "en": "Not run: locked mode runs only what a rule allows, and no rule allows this ({why}).",
        "zh": "未运行: 锁定模式只运行规则允许的操作, 没有规则允许此操作 ({why})。",
    },
    "headless": {
        "en": "Not run: it needs a permission, and there is no one to ask ({why}). "
        "Continue without it, or say which rule would allow it.",
        "zh": "未运行: 此操作需要许可, 但无人可询问 ({why})。请继续其他工作, 或说明需要哪条规则。",
    },
    "sandbox": {
        "en": "Not changed: the sandbox refused writing {why}. Only the session's folders may be "
        "written, and not what other programs obey in them.",
        "zh": "未更改: 沙箱拒绝写入 {why}。只能写入会话的文件夹, 但会被其他程序执行的文件除外。",
    },
    "timeout": {
        "en": "Not run: it needs a permission, and nobody answered in {why}.",
        "zh": "未运行: 此操作需要许可, 但在 {why} 内无人回答。",
    },
}


def choose_locale(environ: Mapping[str, str]) -> Locale:
    """Return the language of the locale: Chinese where the first variable that is set says so."""
    named = next(
        (value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := environ.get(name))), ""
    )
    return "zh" if named.lower().startswith("zh") else "en"


def format_danger(dangers: Iterable[str], locale: Locale = "en") -> str:
    """Return the refusal of a dangerous command: what it is, its dangerous parts, and advice.

    Each part is a line, `part: reason`.
    """
    lines = ".\n".join(dangers)
    return f"{_DANGER[locale]}\n{lines}. {_ADVICE[locale]}"


def format_refusal(kind: str, locale: Locale = "en", *, why: str = "", rule: str = "") -> str:
    """Return the refusal of a kind: rule, plan, locked, headless, sandbox, timeout."""
    return _TEXTS[kind][locale].format(why=why, rule=rule)


def format_declined(reason: str, locale: Locale = "en") -> str:
    """Return the refusal by a person, with the reason that was given."""
    return (
        f"{DECLINED[locale]}\n{_REASON[locale].format(reason)}"
        if reason.strip()
        else DECLINED[locale]
    )
