"""Everyday commands: those that run unasked, and those that ask on purpose, by the reason."""

RUN = r"""
ls -la
pwd
cd "$(git rev-parse --show-toplevel)" && ls
cd -
cd src && ls && cd ..
man ls
less README.md
more README.md
history | tail
history
alias
alias ll
cat /etc/os-release
cat /proc/cpuinfo
cat /proc/meminfo
cat /proc/loadavg
cat /etc/debian_version
cat /etc/lsb-release
python -m json.tool a.json
python3 -m json.tool < a.json
cat a.json | python3 -m json.tool
python -c "print(1)"
python3 -c "print(2**10)"
node -p process.version
node -p "1+1"
node -e "console.log(1)"
git help log
git ls-remote
git ls-remote origin
git fetch
git fetch origin
git status
git status -sb
git log --oneline -10
git log --graph --oneline --all
git diff
git diff --stat
git diff HEAD~1
git diff --cached
git show HEAD
git show HEAD:README.md
git blame README.md
git branch -a
git branch --show-current
git tag
git remote -v
git stash list
git config --get user.name
git config --list
git rev-parse HEAD
git rev-parse --show-toplevel
git reflog
git reflog -5
git shortlog -sn
git describe --tags
git ls-files
git grep TODO
git worktree list
git log -p README.md
git log --since="2 weeks ago" --author=me
git diff main...HEAD
git diff --name-only HEAD~3
git cherry -v
git bisect log
git notes list
git notes show
git submodule status
git archive --list
git var GIT_EDITOR
git symbolic-ref HEAD
git show-branch
git range-diff main~3..main main~2..main
git apply --check fix.patch
git apply --stat fix.patch
git fsck
git count-objects -v
git check-ignore -v build
git diff --check
git log --stat -3
git --version
git --no-pager log -3
git --no-pager diff
git -C src status
git rev-list --count HEAD
yq '.a' config.yaml
yq eval '.a.b' config.yaml
sqlite3 -readonly data.db 'select 1'
sqlite3 -readonly data.db .tables
sqlite3 -readonly data.db ".schema"
nm a.out
nm -D lib.so
objdump -d a.out
readelf -h a.out
readelf -a a.out
size a.out
file a.out
strings a.out
docker inspect web
docker ps -a
docker images
docker logs web
docker compose ps
docker compose logs
docker version
docker info
docker network inspect bridge
docker volume inspect data
docker image inspect x
docker stats --no-stream
docker system df
kubectl get pods
kubectl get pods -A -o wide
kubectl get svc -n web
kubectl describe pod web
kubectl logs web
kubectl logs -f web --tail=10
kubectl version
kubectl config current-context
kubectl config get-contexts
kubectl cluster-info
kubectl top pods
kubectl explain pod
kubectl api-resources
helm list
helm status web
helm version
gh pr list
gh pr view 1
gh pr view
gh pr diff 1
gh pr status
gh pr checks
gh issue list
gh issue view 3
gh run list
gh run view 1
gh run view 1 --log
gh repo view
gh release list
gh auth status
gh workflow list
gh search issues foo
npm outdated
npm view react version
npm view react
npm info react
npm ls
npm ls --depth=0
npm run
npm explain react
npm why react
npm root
npm bin
npm config get registry
npm audit
npm search react
npm ping
npm whoami
npm prefix
pip list
pip list --outdated
pip show click
pip freeze
pip check
pip index versions click
pip --version
uv --version
go version
go env
go env GOPATH
gofmt -l .
gofmt -d .
ruff check
ruff check .
ruff check src
ruff format --check .
ruff --version
mypy src
mypy .
shellcheck run.sh
black --check .
black --diff .
isort --check .
flake8
tsc --noEmit
terraform fmt -check
terraform version
curl -s localhost:3000
curl http://localhost:8080/health
curl -I http://127.0.0.1:8000
curl -sS -o /dev/null -w '%{http_code}' http://localhost:3000
wget -qO- http://localhost:3000
date
date -Iseconds
date -d yesterday
date +%s
date -u
date -u +%Y-%m-%dT%H:%M:%SZ
date -R
date -d @1700000000 +%F
cal
uptime
whoami
id
hostname
uname -a
df -h
du -sh .
free -h
ps aux
ps -ef | grep python
top -bn1 | head
lsof -i :3000
ss -tlnp
netstat -tlnp
printenv PATH
echo $PATH
echo $HOME
which python
type ls
command -v node
hash
ulimit -a
umask
shopt
jobs
lscpu
lsblk
lspci
lsusb
mount
sysctl -a
sysctl kernel.version
dmesg | tail
journalctl -n 20
journalctl -u nginx --since today
systemctl status nginx
systemctl list-units
ip a
ip addr
ip route
ifconfig
find . -name '*.py'
find . -name '*.py' | xargs wc -l
find . -type f -size +1M
grep -rn TODO src
rg TODO
rg -n "def main" -g '*.py'
fd '\.py$'
wc -l src/*.py
head -20 README.md
tail -f app.log
tail -100 app.log
sort a.txt | uniq -c | sort -rn
cut -d, -f1 a.csv
awk '{print $1}' a.txt
awk -F, 'NR>1 {s+=$2} END {print s}' a.csv
sed -n '1,20p' README.md
jq . a.json
jq '.scripts' package.json
cat package.json | jq -r '.version'
diff a b
diff -r src docs
comm a b
column -t a.txt
tree -L 2
stat README.md
realpath README.md
basename src/main.py
xxd a.bin | head
hexdump -C a.bin | head
md5sum README.md
sha256sum README.md
tar tf a.tgz
tar -tzf a.tar.gz
unzip -l a.zip
zipinfo a.zip
gunzip -c a.gz | head
zcat a.gz | head
zgrep foo a.gz
bat README.md
cloc .
tokei
scc
time ls
timeout 10 ls
nl README.md
tac README.md
echo "hello" | tr a-z A-Z
seq 1 10
sleep 1
for f in *.py; do echo $f; done
for f in src/*.py; do wc -l "$f"; done
while read -r l; do echo "$l"; done < README.md
if [ -f README.md ]; then echo yes; fi
[ -d src ] && echo yes
test -f README.md && cat README.md
[[ -n "$X" ]] && echo set
x=1; echo $x
echo $((1+2))
printf '%s\n' a b
true || echo no
ls | head -5
ls *.py 2>/dev/null
ls nosuch 2>&1 | head
cat a.txt > /dev/null
bc <<< "1+2"
echo "2+3" | bc
expr 1 + 2
openssl version
gcc --version
python --version
node --version
node -v
npm -v
java -version
rustc --version
cargo --version
pytest --version
crontab -l
locale
tput cols
stty -a
nproc
getent hosts localhost
conda list
conda env list
brew list
apt list --installed
apt show bash
apt-cache policy bash
apt-cache search bash
dpkg -l
dpkg -L bash
dpkg -S /bin/ls
rpm -qa
"""

ASK = {
    "the folder names what they run: a release, a toolchain, plugins": r"""
ldd a.out
docker compose config
npm pack --dry-run
yarn list
yarn why react
yarn info react
pnpm list
pnpm why react
pnpm outdated
uv pip list
uv pip show click
uv tree
poetry show
poetry show --tree
poetry env info
poetry check
pipdeptree
cargo tree
cargo metadata --format-version 1
cargo search serde
go list ./...
go list -m all
go doc fmt
go mod graph
go mod why x
go vet ./...
make -n
make -n test
make --dry-run
pyright
pylint src
eslint .
eslint src --ext .js
prettier --check .
npx tsc --noEmit
terraform validate
terraform plan
terraform show
terraform output
terraform state list
terraform providers
pytest --collect-only
pytest --co -q
rustup show
pyenv versions
""",
    "they print the environment, or settings that hold credentials": r"""
export
export -p
declare -p PATH
helm get values web
npm config list
pip config list
env | grep PATH
""",
    "they send what they are given over the network, or as the person": r"""
nc -z localhost 5432
ping -c 1 localhost
ssh -V
host localhost
dig localhost
nslookup localhost
traceroute localhost
aws sts get-caller-identity
aws s3 ls
gcloud config list
az account show
psql --version
redis-cli ping
sqlite3 --version
""",
    "they may change something": r"""
python3 -c "import sys; print(sys.version)"
python3 -c 'import json; print(json.dumps({"a": 1}))'
git fetch --all --prune
""",
}
