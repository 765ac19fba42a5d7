"""Ways to spell a dangerous command, and code of other languages that removes; never run."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMANDS = [
    *("rm -rf .git", "rm -rf /", "git update-ref -d refs/heads/main", "git push --force"),
    *("git reset --hard", "dd if=/dev/zero of=/dev/sda"),
]
_WHOLE = [
    *("{0}", "\\{0}", "command {0}", "builtin command {0}", "command -p {0}", "exec {0}"),
    *("busybox {0}", "/bin/busybox {0}", "toybox {0}", "/usr/bin/{0}", "env {0}", "A=1 {0}"),
    *("env -i A=b {0}", "sudo {0}", "sudo -u root -- {0}", "doas {0}", "nohup {0} &", "! {0}"),
    *("timeout 5 {0}", "timeout -s KILL 5 env -u X nice -n 3 {0}", "stdbuf -o0 {0}", "time {0}"),
    *("setsid {0}", "nice {0}", "ionice -c3 {0}", "chroot / {0}", "su -c '{0}'", "strace {0}"),
    *("runuser -u root -- {0}", "runuser -c '{0}'", "screen -dm {0}", "tmux new -d '{0}'"),
    *("script -c '{0}' /dev/null", "watch -n1 '{0}'", "parallel {0} ::: 1", "flock /tmp/l {0}"),
    *("unshare {0}", "systemd-run {0}", "ssh localhost {0}", "coproc {0}", "coproc x {{ {0}; }}"),
    *("x='{0}'; $x", "x='{0}'; eval $x", "x='{0}'; eval \"$x\"", "eval '{0}'", "eval {0}"),
    *("$(echo {0})", 'cmd=({0}); "${{cmd[@]}}"', 'set -- {0}; "$@"', "read -r z <<< '{0}'; $z"),
    *("mapfile -t a <<< '{0}'; ${{a[0]}}", "f() {{ {0}; }}; f", 'f() {{ "$@"; }}; f {0}'),
    *("trap '{0}' EXIT", "alias z='{0}'; z", "true && {0}", "false || {0}", "({0})", "{{ {0}; }}"),
    *("! {{ {0}; }}", "time {{ {0}; }}", "time -p if true; then {0}; fi", "! ! {{ {0}; }}"),
    *("! while true; do {0}; done", "time for i in 1; do {0}; done", "time ! {{ {0}; }}"),
    *("(({0}) )", "(({0} | cat) )", "(({0}))"),
    *("if true; then {0}; fi", "for i in 1; do {0}; done", "case x in x) {0};; esac"),
    *("echo $({0})", 'echo "`{0}`"', "x=$({0})", "cat <({0})", "ls | tee >({0})"),
    *("bash -c '{0}'", 'sh -c "{0}"', "bash -lc '{0}'", "zsh -c '{0}'", "fish -c '{0}'"),
    *("bash <<< '{0}'", "bash <<E\n{0}\nE", "cat <<E | sh\n{0}\nE", "bash <(echo '{0}')"),
    *("source <(echo '{0}')", ". <(printf '%s' '{0}')", "echo '{0}' | sh", "echo {0} | bash"),
    *("printf '{0}' | sh", "printf '%s\\n' '{0}' | bash -s", "echo -n {0} | bash -"),
    *("echo '{0}' | xargs -I{{}} sh -c '{{}}'", "echo x | xargs -I% {0}", "xargs -a f {0}"),
    *("find . -maxdepth 0 -exec {0} \\;", "crontab - <<< '* * * * * {0}'", "at now <<< '{0}'"),
    *("echo '{0}' > /tmp/z.sh; sh /tmp/z.sh", "echo '{0}' > z; chmod +x z; ./z"),
    *("git -c alias.z='!{0}' z", "git -c core.pager='{0}' log", "git bisect run {0}"),
    *("git submodule foreach '{0}'", "GIT_PAGER='{0}' git log", "PAGER='{0}' man ls"),
    *("sed '1e {0}' f", "vim -c ':!{0}' -c q", "vi -c '!{0}'", "ex -c '!{0}' f"),
    *("make SHELL='{0}'", "npm exec -c '{0}'", "npx -c '{0}'", "gdb -batch -ex 'shell {0}'"),
    *("expect -c 'spawn {0}'", "tar cf x y --checkpoint=1 --checkpoint-action=exec='{0}'"),
    *("python3 -c \"import os; os.system('{0}')\"", "perl -e 'system(\"{0}\")'"),
    *("python -c 'import subprocess; subprocess.run(\"{0}\", shell=True)'", "ruby -e '`{0}`'"),
    *("perl -e 'exec q({0})'", "ruby -e 'system(\"{0}\")'", "php -r 'shell_exec(\"{0}\");'"),
    *('node -e \'require("child_process").execSync("{0}")\'', "lua -e 'os.execute(\"{0}\")'"),
    *("awk 'BEGIN{{system(\"{0}\")}}'", 'awk \'BEGIN{{print "x" | "{0}"}}\''),
]
_WORDS = [
    *("'{0}' {1}", '"{0}" {1}', "$'{0}' {1}", "x={0}; $x {1}", "$(echo {0}) {1}", "`echo {0}` {1}"),
    *("$(printf {0}) {1}", "echo {1} | xargs {0}", "{0} \\\n{1}", "{0} $(echo {1})"),
    *("hash -p /bin/{0} z; z {1}", "e''v''al {0} {1}"),
]


def list_spellings(command: str) -> Iterator[str]:
    """Yield a command as it may be spelled, wrapped or handed to another program."""
    name, _, rest = command.partition(" ")
    yield from (one.format(command) for one in _WHOLE)
    yield from (one.format(name, rest) for one in _WORDS)
    yield from (f"{name[0]}''{name[1:]} {rest}", f"{name[0]}\\{name[1:]} {rest}")
    yield f"{{{command.replace(' ', ',')}}}"
    yield f"rev <<< '{command[::-1]}' | sh"
    yield f"echo {base64.b64encode(command.encode()).decode()} | base64 -d | sh"


CODE = [
    "python -c \"import shutil; shutil.rmtree('/')\"",
    "python3 -c 'import shutil; shutil.rmtree(\"/home/ada\")'",
    "python3 -c \"from shutil import rmtree; rmtree('.git')\"",
    "python3 -c \"__import__('shutil').rmtree('/home/ada/project')\"",
    "python3 -c \"import shutil; shutil.rmtree(os.path.expanduser('~'))\"",
    "python3 - <<< \"import shutil; shutil.rmtree('/')\"",
    "echo \"import shutil; shutil.rmtree('/')\" | python3",
    "python3 -c \"import os; [os.remove(f) for f in os.listdir('.')]\"",
    "python3 -c \"import os; os.removedirs('/home/ada')\"",
    "perl -e 'unlink glob \"*\"'",
    "perl -MFile::Path -e 'remove_tree(\"/home/ada\")'",
    'ruby -e \'require "fileutils"; FileUtils.rm_rf("/")\'',
    "ruby -e 'FileUtils.remove_dir \".\"'",
    "node -e 'fs.rmSync(\".git\", {recursive: true, force: true})'",
    'node --eval \'require("fs").rmdirSync("/home/ada",{recursive:true})\'',
    'node -e \'require("fs-extra").removeSync("/")\'',
    'node -e \'require("fs").promises.rm("/",{recursive:true})\'',
    "deno eval 'Deno.removeSync(\"/\", {recursive:true})'",
    'php -r \'array_map("unlink", glob("*"));\'',
    "lua -e 'os.remove(\"/\")'",
    "julia -e 'rm(\"/\", recursive=true)'",
    "groovy -e 'new File(\"/\").deleteDir()'",
    "emacs --batch --eval '(delete-directory \"/\" t)'",
    'vim -es -c \'call delete("/home/ada","rf")\' -c q',
]
ORDINARY_CODE = [
    "python3 -c \"import shutil; shutil.rmtree('build')\"",
    "python3 -c \"import os; [os.remove(f) for f in os.listdir('.') if f.endswith('.pyc')]\"",
    "python3 -c \"import os; os.remove('a.txt')\"",
    "python3 -c \"xs=[1]; xs.remove('.')\"",
    "python3 -c \"d={'a':1}; d.delete('/')\"",
    "python3 -c \"import glob; print(glob.glob('*'))\"",
    'node -e \'require("fs").rmSync("dist", {recursive:true})\'',
    "ruby -e 'FileUtils.rm_rf(\"tmp/cache\")'",
    "perl -e 'unlink \"a.o\"'",
    "vim -c 'g/x/d' f",
]
