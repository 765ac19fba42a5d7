"""Dockerfiles as steps: what is done without a container, and what needs one."""

from __future__ import annotations

import pytest

from gong.evals.dockerfile import (
    CopyStep,
    DockerfileFault,
    Recipe,
    RunStep,
    find_packages,
    parse_dockerfile,
)

TEXT = """
# syntax=docker/dockerfile:1
FROM python:3.12-slim AS base
ARG TOP=/srv
WORKDIR $TOP/app
ENV MODE=test NAME="two words"
ENV OLD style
COPY a.txt \\
     # a remark between
     b.txt ./
COPY --chown=me:me ["data dir", "/data"]
RUN echo one && \\
    echo two
RUN ["echo", "a b"]
EXPOSE 80
USER me
CMD ["python"]
"""


def test_steps_are_read_in_their_order() -> None:
    env = {"MODE": "test", "NAME": "two words", "OLD": "style"}
    assert parse_dockerfile(TEXT) == Recipe(
        (
            CopyStep(("a.txt", "b.txt"), "/srv/app/"),
            CopyStep(("data dir",), "/data"),
            RunStep("echo one && echo two", "/srv/app", env),
            RunStep("echo 'a b'", "/srv/app", env),
        ),
        "/srv/app",
        env,
    )


@pytest.mark.parametrize(
    "line",
    [
        "COPY --from=base /a /b",
        "FROM second",
        "RUN --mount=type=cache,target=/c true",
        "RUN cat <<EOF",
        "ADD https://x.org/a.tar /a",
        "COPY ../../secret /a",
        "COPY a",
        "COPY 'a b",
        "ONBUILD RUN true",
        "nonsense",
    ],
)
def test_what_needs_a_container_is_a_fault_that_names_it(line: str) -> None:
    with pytest.raises(DockerfileFault):
        parse_dockerfile(f"FROM x\n{line}\n")


@pytest.mark.parametrize(
    ("command", "packages"),
    [
        ("apt-get update && apt-get install -y --no-install-recommends git", ("git",)),
        ("apt-get update", ()),
        (
            (
                "DEBIAN_FRONTEND=noninteractive apt install -y g++=4:12 libc6:amd64; apt-get clean;"
                " rm -rf /var/lib/apt/lists/*"
            ),
            ("g++", "libc6"),
        ),
        ("apt-get install -y git && git init", None),
        ("apt-get install -y ./a.deb", None),
        ("apt-get install $(cat list)", None),
        ("rm -rf /var/lib/apt/x /app", None),
        ("apt-get install 'a", None),
    ],
)
def test_lines_that_only_install_packages_are_known(
    command: str, packages: tuple[str, ...] | None
) -> None:
    assert find_packages(command) == packages


def test_an_empty_dockerfile_has_no_steps() -> None:
    assert parse_dockerfile("") == Recipe()
    assert parse_dockerfile("FROM x\r\n") == Recipe()
