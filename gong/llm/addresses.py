"""Where the calls of a preset go: its endpoint, and the path and query of each call.

Address, path and query of a preset may name where the user's models are, in braces:

| `{region}` in `base_url` is | |
|---|---|
| the row's `region` | if `[providers.NAME]` has one |
| the first of `variables.region` that is set | else |
| that of the profile of AWS | else, with `auth = "aws"` |
| `usual.region` | else |

No address contains a secret, so each may be shown and recorded.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING, get_args
from urllib.parse import quote, urlencode, urlsplit

from ..errors import ConfigurationError
from .models import PlaceName
from .provider_errors import remove_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .models import Preset

_PLACE = r"\{(" + "|".join(get_args(PlaceName)) + r")\}"
_IN_HOSTS = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_IN_PATHS = r"[A-Za-z0-9](?:[A-Za-z0-9._:-]*[A-Za-z0-9])?"
_IN_MODELS = "@:"
"""Characters that a model's name keeps in a path."""


def find_endpoint(preset: Preset, environ: Mapping[str, str]) -> str:
    """Return the provider's address without a final slash; raises ConfigurationError."""
    if preset.program:
        return preset.name
    for variable in preset.base_url_variables:
        if address := environ.get(variable, "").strip():
            return _complete_endpoint(preset, address, variable)
    host = environ.get(preset.host_variable, "").strip() if preset.host_variable else ""
    if host:
        usual = urlsplit(preset.base_url)
        with_scheme = host if "://" in host else f"{usual.scheme or 'https'}://{host}"
        endpoint = _complete_endpoint(preset, with_scheme.rstrip("/"), preset.host_variable)
        return endpoint if preset.base_path else endpoint + usual.path
    template = preset.base_url
    if preset.base_urls:
        template = preset.base_urls.get(find_place(preset, "location", environ), template)
    address = fill_places(preset, template, environ, _IN_HOSTS)
    return _complete_endpoint(preset, address, f"base_url of providers.{preset.name}")


def find_place(preset: Preset, name: PlaceName, environ: Mapping[str, str]) -> str:
    """Return the value of a place; "" if nothing says it."""
    variables = (environ.get(variable, "").strip() for variable in preset.variables.get(name, ()))
    own: str = getattr(preset, name)
    value = own or next(filter(None, variables), "")
    if not value and name == "region" and preset.auth == "aws":
        from .aws_keys import find_profile_region  # reads files

        value = find_profile_region(environ, preset.name, preset.aws_profile)
    return value or preset.usual.get(name, "")


def fill_places(
    preset: Preset, template: str, environ: Mapping[str, str], pattern: str = _IN_PATHS
) -> str:
    """Return a template with its places filled in, each of which `pattern` must match.

    Raises ConfigurationError for a place that nothing says, or whose value is no name.
    """
    for name in dict.fromkeys(re.findall(_PLACE, template)):
        value = find_place(preset, name, environ)
        words = name.replace("_", " ")
        if not value:
            raise ConfigurationError(
                f"{preset.name} needs {'an' if name[0] in 'aeiou' else 'a'} {words}: "
                f"{_describe_sources(preset, name)}"
            )
        if not re.fullmatch(pattern, value):
            raise ConfigurationError(
                f"{remove_keys(value)!r} is no {words}: {_describe_sources(preset, name)}"
            )
        template = template.replace(f"{{{name}}}", value)
    return template


def _describe_sources(preset: Preset, name: PlaceName) -> str:
    variables = preset.variables.get(name, ())
    words = f"set {' or '.join(variables)}, or " if variables else "set "
    return f"{words}{name} in [providers.{preset.name}] of config.toml"


def build_call_path(preset: Preset, path: str, model: str) -> str:
    """Return path and query of a call to a model below the endpoint; `path` is the API's own.

    The places of the preset are filled in.
    """
    if preset.path:
        deployment = quote(preset.get_deployment(model), safe=_IN_MODELS)
        path = preset.path.replace("{model}", deployment)
    if not preset.query:
        return path
    return f"{path}{'&' if '?' in path else '?'}{urlencode(preset.query)}"


def is_loopback(url: str) -> bool:
    """Return whether an address is one of this machine."""
    host = _parse_host(url)
    if host is None or host == "localhost":
        return host is not None
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _complete_endpoint(preset: Preset, url: str, where: str) -> str:
    """Return an address without secrets, with a path; raises ConfigurationError."""
    if _parse_host(url) is None:
        address = remove_keys(url)
        raise ConfigurationError(f"{where} is {address!r}, which is not an http(s) address")
    parts = urlsplit(url)
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigurationError(
            f"{where} contains more than an address: put keys and passwords into a variable or, as "
            "headers, in [providers.NAME], and fields of the address into its query"
        )
    url = url.rstrip("/")
    return url if parts.path.strip("/") else url + preset.base_path


def _parse_host(url: str) -> str | None:
    """Return the host of an http(s) address; None for anything else."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises for a port that is none)
    except ValueError:
        return None
    return parts.hostname if parts.scheme in {"http", "https"} and parts.hostname else None
