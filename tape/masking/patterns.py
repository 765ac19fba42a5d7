"""The patterns of secrets that `masking` uses, as data.

Each pattern is narrow enough not to match hashes, ids, pictures in base64 and plain source. The
prefixes of keys are those that the providers publish. Every pattern takes linear time: repetitions
are bounded, or cannot match in two ways.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class SecretPattern(NamedTuple):
    """The pattern of one kind of secret."""

    kind: str
    hints: tuple[str, ...]
    """Lower-case words, one of which is in every possible match.

    Without hints the expression itself is searched, in JSON too.
    """
    text: str
    """Its regular expression: the secret is the group `secret`, or else the whole match."""

    @property
    def expression(self) -> re.Pattern[str]:
        """The expression, compiled when it is needed: all at once take longer than most texts."""
        return _compile_expression(self.text)


@cache
def _compile_expression(text: str) -> re.Pattern[str]:
    return re.compile(text)


_START = r"(?<![A-Za-z0-9])"
_WRAP = r"(?:(?:\\?\r?\n|\\{1,4}n)[ \t]{0,20})?"
"""A possible line break inside a key."""
_REAL = (
    r"(?!(?i:\[?redacted|[$<{%*([&]|\.\.\.|…|x{3}|(?:your|my|example|changeme|change_me|placeholder"
    r"|password[0-9]?|passwd|pass|secret|hidden|masked|none|null|nil|true|false|undefined|test|str"
    r"|string|bytes|int|integer|number|bool|boolean|any|object|optional|required|missing|invalid"
    r"|incorrect|wrong|unknown|empty|expired|enabled|disabled|yes|no|on|off|default|text|varchar"
    r"|secretstr|secretbytes|self|this|args|opts|options|config|settings|env|os|process|await|new|function"
    r"|lambda|input|getpass|prompt|the|to|for|and|or|is|as|in|with|of|flag|option|from|must|not"
    r"|field|value|file|stdin|reset|hash|len|type|return|if|else)(?![A-Za-z0-9@#!$%^&*-])"
    r"|your[_-]|my[_-]|example[_-]|os\.|process\.|self\.|this\.|config\.|settings\.|env\."
    r"|new[ ]|get_?[a-z]*\())"
)
"""Not a placeholder that manuals and scripts use in place of a secret."""
_RANDOM = r"(?=[^\s\"']{0,200}[0-9])(?=[^\s\"']{0,200}[A-Za-z])"
"""With both letters and digits, like a generated secret."""
_NO_MEMBER = r"(?![A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){1,9}(?![\w/+~=-]))"
"""Not a member of something: `user.password2`."""
_NO_CODE = (
    r"(?![A-Za-z_]{1,60}[0-9]{0,2}(?![A-Za-z0-9/+~=.$!@#%^&*-]))"  # a variable
    + _NO_MEMBER
)
_FLAGS = ("-password", "-passwd", "-pass", "-token", "-secret", "-key", "-api", "-credential")
_QUOTES = r"[\"'\\]{0,8}"
_ASSIGN = _QUOTES + r"\s{0,3}(?::=|=>|[:=])\s{0,3}" + _QUOTES
_END = r"(?![(\[])"
_WORD = r"(?P<secret>[A-Za-z0-9/+_.~=%-]{8,}+)" + _END
_NAME_START = "(?=[_acekmlpst][a-z])"
"""How the names below begin: a glance, where to try each of them takes eight times as long."""
_PHRASE = (
    _NAME_START
    + r"(?:password|passwd|passphrase|passcode|(?<![a-z])pass|(?<=[_-])pwd|\bpwd(?!=[/~.]))"
)
_NAMED = _NAME_START + (
    r"(?:api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|auth[_-]?key|account[_-]?key"
    r"|encryption[_-]?key|signing[_-]?key|master[_-]?key|subscription[_-]?key|license[_-]?key"
    r"|app[_-]?key|client[_-]?key|(?<=x-goog-)key|secret|credentials?|_auth"
    r"|(?<!page)(?<!page[_-])(?<!cursor[_-])(?<!continuation[_-])(?<!continuation)token)"
    r"(?:[_-]?(?:key[_-]?base|base|value|string))?"
)


def _build_key_pattern(kind: str, expression: str, *hints: str) -> SecretPattern:
    """Return the pattern of a key that is recognized by its prefix."""
    return SecretPattern(kind, hints, _START + expression)


def _build_context_pattern(kind: str, expression: str, *hints: str) -> SecretPattern:
    """Return the pattern of a secret that is recognized by its context."""
    return SecretPattern(kind, hints, f"(?is:{expression})")


def _build_run_expression(chars: str, least: int) -> str:
    """Return an expression for at least `least` characters, with possible line breaks."""
    return rf"(?:[{chars}]{_WRAP}){{{least - 1}}}[{chars}]+"


_ALNUM, _URL, _HEX = "A-Za-z0-9", "A-Za-z0-9_-", "0-9a-fA-F"

KEY_PREFIXES: tuple[tuple[str, str, str, int], ...] = (
    ("anthropic", "sk-ant-", _URL, 20),
    ("openrouter", "sk-or-", _URL, 32),
    ("openai", "sk-proj- sk-svcacct- sk-admin-", _URL, 20),
    ("openai", "sess-", _ALNUM, 32),
    ("google", "AIza", _URL, 35),
    ("google", "ya29.", "A-Za-z0-9_.-", 20),
    ("google", "GOCSPX-", _URL, 20),
    ("google", "1//0", _URL, 40),
    ("github", "ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM, 36),
    ("github", "github_pat_", "A-Za-z0-9_", 40),
    ("gitlab", "GR1348941", _URL, 20),
    ("slack", "xapp-", "A-Za-z0-9-", 10),
    ("huggingface", "hf_ api_org_", _ALNUM, 30),
    ("groq", "gsk_", _ALNUM, 32),
    ("xai", "xai-", _ALNUM, 32),
    ("perplexity", "pplx-", _ALNUM, 32),
    ("replicate", "r8_", _ALNUM, 36),
    ("nvidia", "nvapi-", _URL, 40),
    ("cerebras", "csk-", _ALNUM, 32),
    ("langsmith", "lsv2_", "A-Za-z0-9_", 32),
    ("tavily", "tvly-", _URL, 20),
    ("npm", "npm_", _ALNUM, 36),
    ("docker", "dckr_pat_ dckr_oat_", _URL, 20),
    ("heroku", "HRKU-", _URL, 30),
    ("shopify", "shpat_ shpca_ shppa_ shpss_", _HEX, 32),
    ("square", "sq0atp- sq0csp- sq0idp-", _URL, 22),
    ("databricks", "dapi", "0-9a-f", 32),
    ("linear", "lin_api_ lin_oauth_", _ALNUM, 32),
    ("notion", "ntn_ secret_", _ALNUM, 40),
    ("figma", "figd_ figo_ figu_", _URL, 20),
    ("vault", "hvs. hvb. hvr.", _URL, 20),
    ("supabase", "sbp_", "0-9a-f", 32),
    ("supabase", "sb_secret_", _URL, 20),
    ("sentry", "sntrys_ sntryu_", "A-Za-z0-9_+/=-", 32),
    ("newrelic", "NRAK-", _ALNUM, 20),
    ("newrelic", "NRII-", _URL, 20),
    ("grafana", "glsa_", "A-Za-z0-9_", 32),
    ("grafana", "glc_", "A-Za-z0-9_+/=", 32),
    ("age", "AGE-SECRET-KEY-1", _ALNUM, 40),
    ("atlassian", "ATATT3", "A-Za-z0-9_=-", 40),
    ("postman", "PMAK-", "A-Za-z0-9-", 40),
    ("doppler", "dp.pt.", _ALNUM, 32),
    ("pulumi", "pul-", "0-9a-f", 32),
    ("rubygems", "rubygems_", "0-9a-f", 40),
    ("fly", "fo1_", _URL, 32),
    ("fly", "fm2_", "A-Za-z0-9_+/=-", 40),
    ("tailscale", "tskey-", "A-Za-z0-9-", 20),
    ("netlify", "nfp_", _ALNUM, 32),
    ("planetscale", "pscale_tkn_ pscale_pw_", "A-Za-z0-9_.=-", 32),
    ("buildkite", "bkua_", _ALNUM, 32),
    ("circleci", "CCIPAT_", "A-Za-z0-9_", 32),
    ("dynatrace", "dt0c01.", "A-Z0-9.", 40),
    ("brevo", "xkeysib-", "A-Za-z0-9-", 40),
    ("1password", "ops_eyJ", "A-Za-z0-9_=+/-", 40),
    ("alibaba", "LTAI", _ALNUM, 16),
    ("bedrock", "ABSK", "A-Za-z0-9+/=", 100),
    ("bedrock", "bedrock-api-key-", "A-Za-z0-9+/=", 40),
    ("vercel", "vcp_ vci_ vca_ vcr_ vck_", _ALNUM, 24),
    ("vercel", "vercel_blob_rw_", "A-Za-z0-9_", 24),
    ("render", "rnd_", _ALNUM, 28),
    ("neon", "napi_", "a-z0-9", 48),
    ("posthog", "phx_ phs_", _ALNUM, 40),
    ("bitbucket", "ATCTT3", "A-Za-z0-9_=-", 40),
    ("bitbucket", "ATBB", _ALNUM, 28),
    ("artifactory", "AKCp", _ALNUM, 60),
    ("artifactory", "cmVmdGtuOj", _ALNUM, 40),
    ("together", "tgp_v1_", _URL, 32),
    ("langfuse", "sk-lf-", "a-f0-9-", 32),
    ("pinecone", "pcsk_", "A-Za-z0-9_", 40),
    ("firecrawl", "fc-", "0-9a-f", 32),
    ("e2b", "e2b_", "0-9a-f", 40),
    ("elevenlabs", "sk_", "0-9a-f", 48),
    ("fireworks", "fw_", _ALNUM, 22),
    ("gcs", "GOOG1E", "A-Z0-9", 24),
    ("stripe", "sk_org_live_ sk_org_test_ sk_org_ rk_org_", "A-Za-z0-9_", 16),
)
"""Provider, prefixes of its keys, characters after them, and their minimum number."""

PATTERNS = (
    _build_context_pattern(
        "private-key",
        r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----.*?"
        r"(?:-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----|\Z)",
        "private key",
    ),
    _build_context_pattern(
        "private-key", r"PuTTY-User-Key-File-\d:.*?(?:Private-MAC:[^\n]*|\Z)", "putty-user-key"
    ),
    *(
        _build_key_pattern(
            kind, re.escape(begins) + _build_run_expression(chars, least), begins.lower()
        )
        for kind, prefixes, chars, least in KEY_PREFIXES
        for begins in prefixes.split()
    ),
    _build_key_pattern(
        "api-key", r"sk-(?=[A-Za-z]{0,200}[0-9])" + _build_run_expression(_ALNUM, 32), "sk-"
    ),
    _build_key_pattern(
        "gitlab", r"gl(?:pat|dt|rtr?|ptt|cbt|oas|soat|ft|imt|agent|ffct|wt)-[\w.-]{20,}", "gl"
    ),
    _build_key_pattern(
        "aws",
        r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9/+=])",
        "akia",
        "asia",
        "abia",
        "acca",
    ),
    _build_context_pattern(
        "aws",
        r"secret_?access_?key" + _ASSIGN + r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        "secret",
    ),
    _build_context_pattern(
        "azure",
        r"(?:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/=]{32,})",
        "accountkey=",
        "sharedaccesskey=",
    ),
    _build_context_pattern("azure", r"(?<![a-z0-9])sig=(?P<secret>[A-Za-z0-9%+/=_-]{20,})", "sig="),
    SecretPattern("azure", ("q~",), r"(?<![A-Za-z0-9~.-])[\w~.-]{3}[78]Q~[\w~.-]{31,34}(?![\w~-])"),
    _build_key_pattern("azure", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}", "azdo"),
    _build_key_pattern("slack", r"(?:xox[abceoprs])(?:-|\.xox[bp]-)[A-Za-z0-9-]{10,}", "xox"),
    _build_context_pattern(
        "slack",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/]{20,})",
        "hooks.slack.com",
    ),
    _build_key_pattern(
        "stripe",
        r"(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{16,})",
        "k_live",
        "k_test",
        "whsec_",
    ),
    _build_key_pattern("pypi", r"pypi-(?=[a-z0-9_-]{0,99}[A-Z])[A-Za-z0-9_-]{32,}", "pypi-"),
    _build_key_pattern("sendgrid", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", "sg."),
    _build_key_pattern("digitalocean", r"do[opr]_v1_[0-9a-f]{40,}", "_v1_"),
    # They start with literal letters, so that the search skips to them: there are no hint words.
    SecretPattern("twilio", (), r"(?:SK|AC)(?<![A-Za-z0-9]..)[0-9a-f]{32}(?![A-Za-z0-9])"),
    _build_key_pattern("mailgun", r"key-[0-9a-f]{32}(?![A-Za-z0-9])", "key-"),
    _build_key_pattern("mailchimp", r"[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])", "-us"),
    _build_key_pattern("telegram", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])", ":aa"),
    SecretPattern(
        "discord",
        (),
        r"(?a)[MNO](?<![.\w-].)(?=[\w-]{0,27}[0-9a-z])[\w-]{22,27}\.[\w-]{6}\."
        r"(?=[\w-]{0,40}[0-9])(?=[\w-]{0,40}[A-Z])[\w-]{27,40}(?![\w-])",
    ),
    _build_context_pattern(
        "discord",
        r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]+/(?P<secret>[\w-]{20,})",
        "/webhooks/",
    ),
    _build_key_pattern("square", r"EAAA[A-Za-z0-9_-]{60}(?![A-Za-z0-9_-])", "eaaa"),
    _build_key_pattern("terraform", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{20,}", "atlasv1"),
    _build_context_pattern(
        "heroku",
        r"heroku\w{0,20}" + _ASSIGN + r"(?P<secret>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
        "heroku",
    ),
    _build_key_pattern(
        "jwt", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}", "eyj"
    ),
    _build_key_pattern(  # encrypted: five parts, of which the second may be empty
        "jwe",
        r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{0,1000}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
        r"\.[A-Za-z0-9_-]{8,}",
        "eyj",
    ),
    _build_key_pattern("airtable", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", "pat"),
    _build_key_pattern("asana", r"[12]/[0-9]{12,20}(?:/[0-9]{12,20})?:[0-9a-f]{32}", "1/", "2/"),
    _build_key_pattern(
        "hubspot",
        r"pat-(?:na|eu|ap)[0-9]-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        "pat-na",
        "pat-eu",
        "pat-ap",
    ),
    _build_key_pattern("mapbox", r"[st]k\.eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", "k.eyj"),
    _build_key_pattern("resend", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}", "re_"),
    _build_key_pattern("nuget", r"oy2[a-z0-9]{43}(?![A-Za-z0-9])", "oy2"),
    _build_key_pattern("crates.io", r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])", "cio"),
    _build_key_pattern(
        "paypal",
        r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}",
        "access_token$",
    ),
    _build_key_pattern(
        "plaid",
        r"access-(?:production|sandbox|development)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        "access-",
    ),
    _build_key_pattern(
        "modal",
        r"a[ks]-(?=[A-Za-z0-9]{0,21}[0-9])(?=[a-z0-9]{0,21}[A-Z])[A-Za-z0-9]{22}(?![\w-])",
        "ak-",
        "as-",
    ),
    _build_key_pattern(
        "zhipu",
        r"[0-9a-f]{32}\.[A-Za-z0-9]{16}(?![A-Za-z0-9.])",
        "zhipu",
        "bigmodel",
        "glm",
        "z.ai",
        "zai",
    ),
    _build_context_pattern(
        "teams",
        r"webhook\.office\.com/webhookb2/(?P<secret>[\w@-]{30,}/IncomingWebhook/[\w/-]{30,})",
        "webhook.office.com",
    ),
    # What files of programs hold
    _build_context_pattern(
        "kubeconfig",
        r"client-key-data" + _ASSIGN + r"(?P<secret>[A-Za-z0-9+/=]{24,})",
        "client-key-data",
    ),
    _build_context_pattern(
        "docker",
        r"[\"']auth\\{0,4}[\"']\s{0,3}:\s{0,3}\\{0,4}[\"'](?=[a-z+/]{0,2000}(?-i:[A-Z0-9]))"
        r"(?P<secret>[A-Za-z0-9+/]{8,2000}={0,2})\\{0,4}[\"']",
        "auth",
    ),
    _build_context_pattern(
        "pgpass",
        r"(?<![\w.:/-])[\w.*-]{1,100}:(?:5432|5433|6432|\*):[\w*-]{1,64}:[\w*-]{1,64}:"
        + _REAL
        + r"(?P<secret>[^\s:\"'\\]{3,200})",
        ":5432:",
        ":5433:",
        ":6432:",
        ":*:",
    ),
    SecretPattern(
        "password-hash",
        ("$",),
        r"\$(?:1|2[abxy]?|5|6|7|y|gy|apr1|argon2(?:id|i|d)|scrypt|md5|sha1|pbkdf2-sha\d{3})"
        r"\$[./A-Za-z0-9$=,+]{16,}",
    ),
    SecretPattern(
        "password-hash",
        ("{sha}", "{ssha}"),
        r"\{S?SHA\}(?P<secret>[A-Za-z0-9+/]{27,}=?)",
    ),
    _build_context_pattern(
        "wordpress",
        r"define\(\s{0,3}\\{0,4}[\"'](?:DB_PASSWORD|(?:SECURE_)?AUTH_(?:KEY|SALT)"
        r"|LOGGED_IN_(?:KEY|SALT)|NONCE_(?:KEY|SALT))\\{0,4}[\"']\s{0,3},\s{0,9}"
        r"\\{0,4}(?P<quote>[\"'])(?!put your|\[redacted)"
        r"(?P<secret>[^\r\n]{4,200}?)\\{0,4}(?P=quote)\s{0,3}\)",
        "define(",
    ),
    _build_context_pattern(
        "laravel", r"app_key" + _ASSIGN + r"base64:(?P<secret>[A-Za-z0-9+/]{40,}={0,2})", "app_key"
    ),
    _build_context_pattern(  # YAML: the value is on the next line
        "assignment",
        r"(?:"
        + _NAMED
        + "|"
        + _PHRASE
        + r")[\"']?[ \t]{0,3}:[ \t]{1,3}[|>][+-]?(?:\r?\n|\\{1,4}n)[ \t]{1,20}"
        + _REAL
        + r"(?P<secret>[^\s\"'\\]{6,})",
        "key",
        "secret",
        "token",
        "credential",
        "_auth",
        "pass",
        "pwd",
    ),
    _build_context_pattern(  # keys without a mark of their own, near the name of their provider
        "api-key",
        r"\b(?:cohere|mistral|fireworks|twilio|discord)(?:ai|_ai)?\b[^\n\"']{0,40}\\{0,4}(?P<quote>[\"'])"
        + _RANDOM
        + r"(?P<secret>[A-Za-z0-9]{32,40})\\{0,4}(?P=quote)",
        "cohere",
        "mistral",
        "fireworks",
        "twilio",
        "discord",
    ),
    _build_context_pattern(
        "authorization",
        r"authorization"
        + _ASSIGN
        + r"(?:bearer|basic|token|api-?key|key|digest|negotiate|hawk)\s{1,3}"
        + _REAL
        + r"(?P<secret>[\w.~+/=:-]{6,})",
        "authorization",
    ),
    _build_context_pattern(
        "authorization",
        r"authorization"
        + _ASSIGN
        + r"(?:[a-z][\w-]{2,30}\s{1,3})?"
        + _REAL
        + _RANDOM
        + _NO_CODE
        + r"(?P<secret>[\w.~+/=-]{8,}+)"
        + _END,
        "authorization",
    ),
    _build_context_pattern(
        "authorization",
        r"x-amz-(?:signature|credential|security-token)=(?P<secret>[\w%+/=.-]{16,})",
        "x-amz-",
    ),
    _build_context_pattern(
        "bearer",
        r"\bbearer\s{1,3}" + _REAL + _RANDOM + r"(?P<secret>[A-Za-z0-9._~+/=-]{20,})",
        "bearer",
    ),
    _build_context_pattern(
        "cookie",
        r"\b(?:set-)?cookie[\"'\\]{0,8}\s{0,3}:\s{0,3}[\"'\\]{0,8}"
        r"(?P<secret>[\w.-]{1,80}=(?!\[redacted)(?=[^\r\n\"'\\]{6})[^\s;\"'\\][^\r\n\"'\\]{0,4000})",
        "cookie",
    ),
    _build_context_pattern(
        "cookie",
        r"\b(?:phpsessid|jsessionid|connect\.sid|sessionid|session_id|csrftoken|_gitlab_session"
        r"|laravel_session|auth_session)=(?P<secret>[\w.%+/:-]{8,})",
        "sess",
        "connect.sid",
        "csrftoken",
    ),
    _build_context_pattern(
        "url-password",
        r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'<>\\\[]{0,100}:"
        r"(?!(?:pass|password|passwd|secret|test|pwd)@)"
        + _REAL
        + r"(?P<secret>[^\s/@\"'<>\\]{3,200})@",
        "://",
    ),
    _build_context_pattern(
        "url-password",
        r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,20}://" + _RANDOM + r"(?P<secret>[\w-]{20,200})@",
        "://",
    ),
    _build_context_pattern(
        "url-password",
        r"[?&](?:key|auth|code|access_token|signature|password|pwd)="
        + _REAL
        + _RANDOM
        + r"(?P<secret>[\w.~%+/=-]{8,})",
        "key=",
        "auth=",
        "code=",
        "token=",
        "signature=",
        "password=",
        "pwd=",
    ),
    _build_context_pattern(
        "netrc",
        r"\blogin\s{1,8}\S{1,100}\s{1,8}(?:account\s{1,8}\S{1,100}\s{1,8})?password\s{1,8}"
        r"(?!\[redacted)(?P<secret>\S{3,200})",
        "login",
    ),
    # Flags of commands
    _build_context_pattern(
        "flag",
        r"(?<![\w-])--?(?:[a-z]{1,20}-){0,4}(?:password|passwd|passphrase|pass|token|secret|api-?key"
        r"|access-?key|secret-?key|auth-?token|credentials?)=\\{0,4}[\"']?"
        + _REAL
        + r"(?P<secret>[^\s\"'\\;&|()]{4,}+)"
        + _END,
        *_FLAGS,
    ),
    _build_context_pattern(
        "flag",
        r"(?<![\w-])--(?:[a-z]{1,20}-){0,4}(?:password|passwd|passphrase|pass|token|secret|api-?key"
        r"|access-?key|secret-?key|auth-?token|credentials?)[ \t]{1,3}(?:\\{0,4}[\"'])?(?!-)"
        + _REAL
        + r"(?P<secret>(?:(?=[^\s\"']{0,100}[0-9!@#%^*_+])[^\s\"'\\;&|()<>,]{4,}|[a-z]{6,})+)"
        r"(?![(\[<>])",
        *_FLAGS,
    ),
    _build_context_pattern(
        "flag",
        r"\b(?:mysql|mysqldump|mysqladmin|mysqlimport|mariadb|mariadb-dump)\b[^\n|;&]{0,200}?\s-p"
        r"(?![a-z]{0,9}[ =])" + _REAL + r"(?P<secret>[^\s\"'\\|;&]{3,})",
        "mysql",
        "mariadb",
    ),
    _build_context_pattern(
        "flag",
        r"\b(?:sshpass|(?:docker|podman|helm|oc|az|npm)\b[^\n|;&]{0,80}?\blogin\b)[^\n|;&]{0,200}?\s-p"
        r"[ =]?\\{0,4}[\"']?(?!-|assword)" + _REAL + r"(?P<secret>[^\s\"'\\|;&]{3,})",
        "sshpass",
        "login",
    ),
    _build_context_pattern(
        "flag",
        r"\bredis-cli\b[^\n|;&]{0,200}?\s-a[ =]?\\{0,4}[\"']?(?!-)"
        + _REAL
        + r"(?P<secret>[^\s\"'\\|;&]{3,})",
        "redis-cli",
    ),
    _build_context_pattern(
        "flag",
        r"\b(?:curl|wget|http|https|xh)\b[^\n|;]{0,400}?\s(?:-u|-a|--user|--proxy-user|--auth|-U)"
        r"[ =]?\\{0,4}[\"']?[^\s:\"'\\]{0,100}:(?!//)" + _REAL + r"(?P<secret>[^\s\"'\\|;&]{3,})",
        "curl",
        "wget",
        "http",
        "xh",
    ),
    _build_context_pattern(
        "cookie",
        r"\bcurl\b[^\n|;]{0,400}?\s(?:-b|--cookie)[ =]?\\{0,4}[\"']?"
        r"(?P<secret>[\w.-]{1,80}=(?!\[redacted)[^\"'\\\n]{4,2000})",
        "curl",
    ),
    # Names whose assigned value is secret
    _build_context_pattern(
        "assignment",
        r"<(?P<tag>(?:[\w.-]{0,40}?)(?:password|passwd|passphrase|secret|token|api[_-]?key))>\s{0,9}"
        + _REAL
        + r"(?P<secret>[^<>\s]{4,200})\s{0,9}</(?P=tag)>",
        "</",
    ),
    _build_context_pattern(
        "assignment",
        r"\b(?:key|name|id)=\\{0,4}[\"'][\w.:-]{0,40}?(?:password|passwd|passphrase|secret|token|api_?key)"
        r"\\{0,4}[\"']\s{1,3}value=\\{0,4}[\"']" + _REAL + r"(?P<secret>[^\"'\\\s]{4,200})",
        "value=",
    ),
    _build_context_pattern(
        "assignment",
        _NAMED + _ASSIGN + _REAL + _RANDOM + _NO_CODE + _WORD,
        "key",
        "secret",
        "token",
        "credential",
        "_auth",
    ),
    SecretPattern("assignment", ("_key",), "_KEY=[\"']?" + _REAL + _RANDOM + _NO_CODE + _WORD),
    SecretPattern(
        "assignment",
        ("pass", "_pwd"),
        r"(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD)=\\{0,4}[\"']?"
        + _REAL
        + r"(?P<secret>[^\s\"'\\;&|()\[\]]{3,}+)(?![(\[])",
    ),
    _build_context_pattern(
        "assignment",
        _PHRASE
        + r"[\"'\\]{0,8}\s{0,3}(?::=|=>|[:=])\s{0,3}\\{0,7}(?P<quote>[\"'])"
        + _REAL
        # A label of a form, in whatever language, is a word with a capital or of another script
        + r"(?!(?-i:[A-Z]?[a-z]{2,20}Password|[A-Z][a-z]{2,30})\\{0,7}[\"'])"
        + r"(?![^\W\d_a-zA-Z]{2,40}\\{0,7}[\"'])"
        + r"(?P<secret>[^\s\"'\\]{4,})\\{0,7}(?P=quote)",
        "pass",
        "pwd",
    ),
    _build_context_pattern(
        "assignment",
        _PHRASE + r"=" + _REAL + r"(?=[^\s\"']{0,200}[0-9!@#%^*])"
        r"(?P<secret>[^\s\"'\\;&|()\[\],.]{6,}+)(?![(\[.])",
        "pass",
        "pwd",
    ),
    _build_context_pattern(  # a line of YAML or of an INI file, or a word of a log
        "assignment",
        _PHRASE
        + r"(?:[ \t]{0,3}:[ \t]{1,3}|[ \t]{1,3}=[ \t]{1,3})"
        + _REAL
        + _NO_MEMBER
        + r"(?=[^\s\"']{0,200}[0-9!@#%^*$])(?P<secret>[^\s\"'\\()\[\]{},;]{4,}+)(?![(\[])",
        "pass",
        "pwd",
    ),
    _build_context_pattern(  # the same without a digit: only alone on its line
        "assignment",
        r"(?:(?<![^\n])|(?<=\\n)|(?<=[\"']))[ \t]{0,40}(?:-[ ])?"
        r"(?-i:[a-z0-9_.-]{0,40}?(?:password|passwd|passphrase))[ \t]{0,3}:[ \t]{1,3}"
        + _REAL
        + r"(?P<secret>[a-z_-]{4,64})[ \t]{0,9}(?=\\{0,4}[\"']|\\{1,4}[nr]|\r?\n|\Z)",
        "pass",
    ),
)
"""Every known kind of secret, the narrow ones first."""

ASSIGNMENT_HINT = re.compile(
    r"(?:key|secret|token|credentials?|_auth|pass(?:word|wd|phrase|code)?|pwd)"
    r"(?:[_-]?(?:key[_-]?base|base|value|string))?"
    r"(?:[\"'\\]{0,20}(?:\s|\\[nrt]){0,3}(?:=|:)|[\"'\\]{1,20}\s{1,3}value=|>)"
)
"""In every possible match of an assignment, in lower-case text or JSON; found much faster."""
