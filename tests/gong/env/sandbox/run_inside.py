"""Run commands inside a sandbox as this process' user, and print how they ended.

Standard input is JSON: {folder, home, outside, writes, limits, commands}; the answer is JSON, too.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[4]))

from gong.env.sandbox.limits import UsageLimits
from gong.env.sandbox.sandbox import SandboxRequest, find_kinds, open_sandbox


def main():
    task = json.load(sys.stdin)
    home, folder = task["home"], task["folder"]
    environ = {"HOME": home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    own = (f"{home}/.config/gong", f"{home}/.local/state/gong", f"{home}/.tape")
    request = SandboxRequest(
        folder,
        environ,
        task.get("writes", True),
        own_folders=own,
        limits=UsageLimits(*task.get("limits", ())),
        unix_sockets=task.get("unix_sockets", False),
    )
    kinds = find_kinds(environ)
    if task.get("without_bubblewrap"):
        kinds = [kind for kind in kinds if kind.kind != "bubblewrap"]
    sandbox = open_sandbox(request, kinds)
    results = []
    try:
        for command in task["commands"]:
            words, variables = sandbox.wrap(
                ("/bin/bash", "-c", command), {**environ, **task["variables"]}
            )
            done = subprocess.run(
                words,
                cwd=task.get("cwd", folder),
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=120,
                check=False,
            )
            output = done.stdout.decode("utf-8", "replace")
            refusals = sandbox.find_refusals(done.stdout, done.returncode)
            results.append([done.returncode, output, refusals, sandbox.find_appeared()])
        print(json.dumps({
            "kind": sandbox.kind,
            "limits": sandbox.limits,
            "remarks": sandbox.protection.remarks,
            "results": results,
        }))  # fmt: skip
    finally:
        sandbox.close()


main()
