"""The classes of errors that programs meet, each with its exit code."""

from __future__ import annotations

from typing import get_args

import pytest

from gong import errors
from gong.tools.tool import ErrorKind
from tape import errors as store

CLASSES = {
    "provider: API": (errors.ServerError, 75, errors.ModelError),
    "provider: network": (errors.NetworkError, 75, errors.ModelError),
    "provider: timeout": (errors.RequestTimeout, 75, errors.ModelError),
    "provider: rate": (errors.RateLimited, 75, errors.ModelError),
    "session: load": (store.NotFound, 3, store.TapeError),
    "session: save": (store.WriteFailed, 1, store.TapeError),
    "session: corruption": (store.Damaged, 4, store.TapeError),
    "system: cancelled": (errors.Aborted, 130, errors.GongError),
    "system: folders": (errors.FolderGone, 1, errors.GongError),
    "system: configuration": (errors.ConfigurationError, 2, errors.GongError),
}


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_of_errors_has_its_exit_code(name):
    """M207"""
    error, code, above = CLASSES[name]
    assert issubclass(error, above)
    assert error.exit_code == code


def test_errors_of_tools_are_named_kinds_of_results():
    """M207: validation, execution and permission."""
    assert set(get_args(ErrorKind)) == {
        *("FileNotFound", "EditConflict", "ShellExitError", "ShellTimeout"),
        *("PermissionDenied", "ValidationError", "UnknownTool"),
    }
