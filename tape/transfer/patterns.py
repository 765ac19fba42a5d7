"""What secrets look like: the whole knowledge of `masking`, as data.

Each pattern is narrow enough to leave hashes, ids, pictures in base64 and plain source alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Pattern(NamedTuple):
    """How one kind of secret looks."""

    kind: str
    hints: tuple[str, ...]
    """Lower-case words of which one stands wherever the expression can match."""
    expression: re.Pattern[str]
    """What of its match is secret is its group `secret`, the whole match where it has none."""


_START = r"(?<![A-Za-z0-9_-])"
_REAL = (
    r"(?!(?i:\[redacted:|[$<{%*(]|\.\.\.|x{3}|(?:your|my|example|changeme|change_me|password|passwd"
    r"|secret|redacted|none|null|true|false|undefined|test|str|string)\b|your[_-]))"
)
"""Not what stands in a manual or a script where a secret would stand."""
_RANDOM = r"(?=[^\s\"']{0,200}[0-9])(?=[^\s\"']{0,200}[A-Za-z])"
"""With letters and digits, as what was drawn by a machine has them."""
_IS = r"[\"'\\]{0,4}\s{0,3}[:=]\s{0,3}[\"'\\]{0,4}"
_WORD = r"(?P<secret>[A-Za-z0-9/+_.~=-]{16,}+)(?![(\[])"


def _key(kind: str, expression: str, *hints: str) -> Pattern:
    """Return the pattern of a key that is known by how it begins."""
    return Pattern(kind, hints, re.compile(_START + expression))


def _in(kind: str, expression: str, *hints: str) -> Pattern:
    """Return the pattern of a secret that is known by what stands around it."""
    return Pattern(kind, hints, re.compile(f"(?is:{expression})"))


PATTERNS = (
    _in(
        "private-key",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----.*?"
        r"(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\Z)",
        "private key",
    ),
    _key("anthropic", r"sk-ant-[A-Za-z0-9_-]{20,}", "sk-ant-"),
    _key("openrouter", r"sk-or-[A-Za-z0-9_-]{32,}", "sk-or-"),
    _key("openai", r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}", "sk-"),
    _key("api-key", r"sk-(?=[A-Za-z]*[0-9])[A-Za-z0-9]{32,}", "sk-"),
    _key("google", r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])", "aiza"),
    _key("google", r"(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{20,}", "ya29.", "gocspx-"),
    _key("github", r"gh[pousr]_[A-Za-z0-9]{36,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _key("github", r"github_pat_[A-Za-z0-9_]{40,}", "github_pat_"),
    _key("gitlab", r"gl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_.-]{20,}", "gl"),
    _key("aws", r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9/+=])", "akia", "asia"),
    _in(
        "aws",
        r"secret_?access_?key" + _IS + r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        "secret",
    ),
    _in("azure", r"AccountKey=(?P<secret>[A-Za-z0-9+/=]{40,})", "accountkey="),
    _key("slack", r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}", "xox", "xapp-"),
    _in("slack", r"hooks\.slack\.com/services/(?P<secret>T\w+/B\w+/\w{16,})", "hooks.slack.com"),
    _key("stripe", r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}", "k_live", "k_test", "whsec_"),
    _key("huggingface", r"hf_[A-Za-z0-9]{30,}", "hf_"),
    _key("groq", r"gsk_[A-Za-z0-9]{40,}", "gsk_"),
    _key("xai", r"xai-[A-Za-z0-9]{40,}", "xai-"),
    _key("perplexity", r"pplx-[A-Za-z0-9]{40,}", "pplx-"),
    _key("replicate", r"r8_[A-Za-z0-9]{37}(?![A-Za-z0-9])", "r8_"),
    _key("npm", r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])", "npm_"),
    _key("pypi", r"pypi-AgE[A-Za-z0-9_-]{50,}", "pypi-age"),
    _key("sendgrid", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", "sg."),
    _key("digitalocean", r"do[opr]_v1_[0-9a-f]{64}", "_v1_"),
    _key("docker", r"dckr_pat_[A-Za-z0-9_-]{20,}", "dckr_pat_"),
    _key("databricks", r"dapi[0-9a-f]{32}(?![A-Za-z0-9])", "dapi"),
    _key("vault", r"hv[sbr]\.[A-Za-z0-9_-]{20,}", "hvs.", "hvb.", "hvr."),
    _key("telegram", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])", ":aa"),
    _key("jwt", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}", "eyj"),
    _in(
        "authorization",
        r"authorization"
        + _IS
        + r"(?:bearer|basic|token)\s+"
        + _REAL
        + r"(?P<secret>[\w.~+/=-]{8,})",
        "authorization",
    ),
    _in(
        "bearer",
        r"\bbearer\s+" + _REAL + _RANDOM + r"(?P<secret>[A-Za-z0-9._~+/=-]{20,})",
        "bearer",
    ),
    _in(
        "url-password",
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'<>\\]{0,100}:"
        + _REAL
        + r"(?P<secret>[^\s/@\"'<>\\]{3,200})@",
        "://",
    ),
    _in(
        "assignment",
        r"(?:api_?key|access_?key|secret_?key|private_?key|auth_?key|encryption_?key|signing_?key"
        r"|secret|(?<!page)(?<!page_)token)" + _IS + _REAL + _RANDOM + _WORD,
        "key",
        "secret",
        "token",
    ),
    Pattern("assignment", ("_key",), re.compile("_KEY=[\"']?" + _REAL + _RANDOM + _WORD)),
    Pattern(
        "assignment",
        ("passw", "passphrase"),
        re.compile(
            r"(?:PASSWORD|PASSWD|PASSPHRASE)=[\"']?"
            + _REAL
            + r"(?P<secret>[^\s\"'\\;&|()\[\]]{4,}+)"
            r"(?![(\[])"
        ),
    ),
    _in(
        "assignment",
        r"(?:password|passwd|passphrase)[\"'\\]{0,4}\s{0,3}[:=]\s{0,3}\\{0,2}(?P<quote>[\"'])"
        + _REAL
        + r"(?P<secret>[^\s\"'\\]{4,})\\{0,2}(?P=quote)",
        "passw",
        "passphrase",
    ),
    _in(
        "assignment",
        r"(?:password|passwd|passphrase|\bpwd)=" + _REAL + r"(?=[^\s\"']{0,200}[0-9])"
        r"(?P<secret>[^\s\"'\\;&|()\[\],.]{6,}+)(?![(\[.])",
        "passw",
        "passphrase",
        "pwd",
    ),
)
"""Every kind of secret that is known, the narrow ones first."""

ASSIGNED = re.compile(
    r"(?:key|secret|token|passw(?:or)?d|passphrase|pwd)[\"'\\]{0,10}(?:\s|\\[nrt]){0,3}[:=]"
)
"""What stands wherever an assignment can match, in lower-case text or JSON; found much faster."""
