"""The real clients of containers and clusters: docker, docker's images, kubectl."""

from __future__ import annotations

import os
import subprocess

import pytest

from gong.env.conformance import CASES, run_cases
from gong.env.places.opening import choose_place, open_place
from gong.env.variables import VariableRules
from gong.errors import ConfigurationError
from tests.gong.env.places.machines import (
    ENVIRON,
    import_image,
    keep_containers,
    make_root,
    make_table,
    needs_docker,
    needs_kubectl,
    needs_podman,
    open_table,
    run_container,
    serve_docker,
)
from tests.gong.env.places.pods import serve_pod

SIZES = [
    pytest.param(CASES[::12], id="sample"),
    pytest.param([*CASES], id="all", marks=pytest.mark.slow),
]


@needs_podman
@needs_kubectl
@pytest.mark.parametrize("cases", SIZES)
async def test_a_pod_runs_the_suite_by_kubectl(tmp_path, cases):
    """M125: kubectl's own channel to a container of a pod, and exit codes of a command."""
    with run_container(tmp_path) as box:
        name = box["place"].removeprefix("docker:")
        with serve_pod(tmp_path, (*box["program"], "exec", "-i", name)) as (pods, kubectl):
            table = {"program": kubectl, "folder": "/srv/app"}
            async with open_table({**table, "place": "k8s:lab/team-a/web-0/sidecar"}) as env:
                results = [each async for each in run_cases(env, "/srv/app", cases)]
                assert [result for result in results if result[1]] == []
                code = await env.exec_command("exit 7")
                assert (env.name, code.exit_code) == ("k8s:lab/team-a/web-0/sidecar", 7)
                assert pods.containers == ["sidecar"]
            with pytest.raises(ConfigurationError, match='pods "web-9" not found'):
                async with open_table({**table, "place": "k8s:lab/team-a/web-9"}):
                    pass
            with pytest.raises(ConfigurationError, match="container none"):
                async with open_table({**table, "place": "k8s:lab/team-a/web-0/none"}):
                    pass


@needs_podman
@needs_docker
@pytest.mark.parametrize("cases", SIZES)
async def test_a_container_runs_the_suite_by_docker(tmp_path, cases):
    """M125: the command line of docker, and the mounts that it describes."""
    (tmp_path / "here").mkdir()
    with (
        run_container(tmp_path, "-v", f"{tmp_path}/here:/mounted") as box,
        serve_docker(box["program"], tmp_path) as docker,
    ):
        table = {"place": box["place"], "program": docker}
        async with open_table({**table, "folder": "/srv/app"}) as env:
            results = [each async for each in run_cases(env, "/srv/app", cases)]
            assert [result for result in results if result[1]] == []
        choice = choose_place("box", {"box": make_table(table)})
        env = await open_place(choice, f"{tmp_path}/here", ENVIRON, VariableRules())
        assert env.working_directory == "/mounted"
        assert f"{tmp_path}/here is /mounted in {box['place']}" in env.remarks
        await env.cleanup()


@needs_podman
@needs_docker
async def test_a_container_of_an_image_has_the_folder_and_is_removed(tmp_path):
    """M125: docker-image:NAME is started with the folder mounted, and gone at the end."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project/a").write_text("from here")
    make_root(tmp_path / "rootfs")
    with keep_containers(tmp_path) as podman, serve_docker(podman, tmp_path) as docker:
        import_image(podman, tmp_path / "rootfs")

        def list_containers():
            listed = (*podman, "ps", "-a", "--format", "{{.Names}}")
            return subprocess.run(listed, capture_output=True, text=True, check=True).stdout

        table = {"place": "docker-image:box:1", "program": docker}
        choice = choose_place("box", {"box": make_table(table)})
        here = str(tmp_path / "project")
        env = await open_place(choice, here, ENVIRON, VariableRules())
        assert (env.name, env.working_directory) == ("docker-image:box:1", here)
        assert f"{here} is mounted in docker-image:box:1, under the same name" in env.remarks
        assert list_containers().startswith("gong-")
        assert await env.read_file("a") == b"from here"
        await env.exec_command("echo there > b; sleep 300 >/dev/null 2>&1 &")
        assert (tmp_path / "project/b").read_text() == "there\n"
        assert (tmp_path / "project/b").stat().st_uid == os.geteuid()
        await env.cleanup()
        assert list_containers() == ""
        wrong = choose_place("box", {"box": make_table({**table, "place": "docker-image:none"})})
        with pytest.raises(ConfigurationError, match="none"):
            await open_place(wrong, here, ENVIRON, VariableRules())
        assert list_containers() == ""
