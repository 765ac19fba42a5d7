"""Commands of every day: what only reads runs unasked, and stays so whatever the folder holds."""

from __future__ import annotations

import subprocess

import pytest

from gong.policy.modes import PermissionMode
from gong.policy.permissions import PermissionPolicy
from tests.gong.policy.everyday_cases import ASK, RUN


@pytest.fixture
def folder(tmp_path):
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "README.md").write_text("x\n")
    (work / "data.db").touch()
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    return work


def decide(folder, command, mode=PermissionMode.DEFAULT):
    policy = PermissionPolicy(str(folder), str(folder.parent / "home"), mode)
    return policy.judge("bash", {"command": command})


def test_everyday_commands_that_read_run_unasked(folder):
    commands = RUN.strip().split("\n")
    assert len(commands) > 300
    assert [one for one in commands if decide(folder, one).decision != "allow"] == []


def test_commands_that_ask_on_purpose_do(folder):
    commands = [one for group in ASK.values() for one in group.strip().split("\n")]
    assert [one for one in commands if decide(folder, one).decision != "ask"] == []


NEIGHBOURS = r"""
less +!touch README.md
less -o copy README.md
man -P ./x ls
man ./x
npm view react --registry=http://example.org
npm view react --userconfig x
npm run build
npm outdated --prefix x
kubectl get secrets
kubectl get secret/a -o yaml
kubectl get pods -f x.yaml
kubectl -n web get secret a
kubectl get pods -o jsonpath-file=../x
kubectl logs web --kubeconfig x
kubectl cluster-info dump
kubectl delete pod web
gh pr view 1 --web
gh pr list --jq 'env.A'
gh auth status --show-token
gh pr merge 1
docker inspect web -H tcp://example.org
curl localhost:80@example.org
curl http://localhost.example.org
curl -L http://localhost
curl -o x http://localhost
curl -d a http://localhost
curl -X POST http://localhost
curl http://localhost http://example.org
curl -w '%output{x}' http://localhost
curl -H @x http://localhost
wget http://localhost
git ls-remote http://example.org
git ls-remote ../other
git ls-remote --upload-pack=./x origin
git fetch origin main:main
git fetch ../other
git fetch --upload-pack=./x
git apply --check --apply a.patch
git apply a.patch
git help -w log
yq -i '.a=1' config.yaml
yq 'load("x")' config.yaml
yq '.a = env(A)' config.yaml
sqlite3 data.db 'select 1'
sqlite3 -readonly data.db "select readfile('/etc/passwd')"
sqlite3 -readonly data.db '.shell ls'
sqlite3 -readonly data.db ".tables\n.shell ls"
sqlite3 -readonly data.db "select 1" ".system ls"
sqlite3 -readonly -init x data.db 'select 1'
sqlite3 -readonly /srv/other.db 'select 1'
python -c "__import__('os').remove('a')"
python -c "print(open('a').read())"
python -c "().__class__"
python -c "import os"
python -c "print(1)" x
python -m json.tool a.json b.json
python -m json.tool /srv/a.json
python -m http.server
node -p "require('fs')"
node -e "console.log(process.env)"
node -p "process.mainModule"
nm @options
objdump --plugin ./x a.out
crontab -r
crontab x
journalctl --vacuum-size=1
journalctl --rotate
sysctl -w kernel.x=1
sysctl kernel.x=1
mount /dev/sda1 /mnt
dmesg -C
alias ls='rm x'
history -c
hash -p ./x ls
shopt -s extglob
ulimit -n 5
umask 0
jobs -x ls
rpm -qa --pipe ./x
rpm -q --qf '%(ls)'
dpkg -i a.deb
apt install bash
gunzip a.gz
bat --pager ./x README.md
bat cache --build
black .
isort .
ruff check --fix
ruff format .
mypy --config-file x src
tsc
tsc --noEmit -p ../other
terraform fmt
date -s tomorrow
date -us tomorrow
cat /etc/hosts /etc/shadow
cd - && ls
cd - && cat README.md
"""


def test_their_neighbours_that_do_more_ask(folder):
    commands = NEIGHBOURS.strip().split("\n")
    assert [one for one in commands if decide(folder, one).decision == "allow"] == []


@pytest.mark.parametrize(
    ("command", "file", "text"),
    [
        ("ruff check", "pyproject.toml", "[tool.ruff]\nfix = true\n"),
        ("ruff check src", "ruff.toml", 'cache-dir = "../x"\n'),
        ("mypy src", "mypy.ini", "[mypy]\nplugins = ./evil.py\n"),
        ("mypy src", "setup.cfg", "[mypy]\npython_executable = ./evil\n"),
        ("flake8", "tox.ini", "[flake8:local-plugins]\nextension = X = evil:X\n"),
        ("tsc --noEmit", "tsconfig.json", '{"compilerOptions": {"incremental": true}}'),
        ("shellcheck run.sh", ".shellcheckrc", "external-sources=true\n"),
        ("python3 -m json.tool README.md", "json.py", ""),
        ("cat a | python3 -m json.tool", "argparse/__init__.py", ""),
    ],
)
def test_a_file_that_makes_a_reader_do_more_asks(folder, command, file, text):
    assert decide(folder, command).decision == "allow"
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(text)
    ruling = decide(folder, command)
    assert ruling.decision == "ask"
    assert str(folder / file.partition("/")[0]) in ruling.why
    assert decide(folder, command, PermissionMode.PLAN).decision != "allow"
