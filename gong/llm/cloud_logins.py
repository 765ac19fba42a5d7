"""Whether a cloud's own programs have left a login here: variables and files, none of them read."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..private_files import locate_home

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .models import Preset

AWS_PROFILE_VARIABLES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
GOOGLE_FILE_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
_AWS_VARIABLES = (
    *("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", *AWS_PROFILE_VARIABLES),
    *("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
)


def describe_login(preset: Preset, environ: Mapping[str, str]) -> str:
    """Return what gives the key of a provider where no variable has it and none is saved.

    "" if nothing does.
    """
    if preset.key_command:
        return "key_command"
    if preset.auth == "aws" and _has_aws_login(preset, environ):
        has_key = environ.get("AWS_ACCESS_KEY_ID", "").strip() and not preset.aws_profile
        profile = get_aws_profile(preset.aws_profile, environ)
        return "AWS_ACCESS_KEY_ID" if has_key else f"profile {profile} of AWS"
    if preset.auth == "google" and _has_google_login(environ):
        return environ.get(GOOGLE_FILE_VARIABLE, "").strip() or "the login of gcloud"
    return ""


def get_aws_profile(own: str, environ: Mapping[str, str]) -> str:
    """Return the name of the profile: the provider's own, else the environment's."""
    variables = (environ.get(name, "").strip() for name in AWS_PROFILE_VARIABLES)
    return own or next(filter(None, variables), "default")


def locate_profile_files(environ: Mapping[str, str]) -> tuple[Path, Path]:
    """Return the files of keys and of settings of AWS, which need not exist."""
    home = locate_home(environ) / ".aws"
    return (
        Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials").expanduser(),
        Path(environ.get("AWS_CONFIG_FILE") or home / "config").expanduser(),
    )


def has_botocore() -> bool:
    """Return whether botocore is installed."""
    return find_spec("botocore") is not None


def has_google_auth() -> bool:
    """Return whether google-auth is installed."""
    return find_spec("google") is not None and find_spec("google.auth") is not None


def _has_aws_login(preset: Preset, environ: Mapping[str, str]) -> bool:
    is_set = any(environ.get(name, "").strip() for name in _AWS_VARIABLES)
    return (
        bool(preset.aws_profile)
        or is_set
        or any(file.is_file() for file in locate_profile_files(environ))
    )


def _has_google_login(environ: Mapping[str, str]) -> bool:
    folder = environ.get("CLOUDSDK_CONFIG") or locate_home(environ) / ".config/gcloud"
    file = environ.get(GOOGLE_FILE_VARIABLE, "").strip()
    path = Path(file) if file else Path(folder) / "application_default_credentials.json"
    return path.is_file() and has_google_auth()
