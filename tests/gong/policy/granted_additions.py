"""Everyday commands, and what is added to them that changes what runs; data, never run."""

COMMANDS = """
npm test
npm run build
npm install
yarn build
pnpm test
npx tsc
pytest
pytest tests/a.py -k x
python -m pytest
python manage.py migrate
python script.py
make
make test
cargo build
cargo test
go test ./...
go build
mvn package
gradle build
./gradlew test
docker build .
docker compose up -d
git commit -m x
git add .
git push
git checkout main
git pull
ssh host ls
scp a host:b
curl https://x.org
pip install requests
uv run pytest
uv sync
poetry install
ruff format
black .
prettier --write a.js
eslint --fix a.js
tsc
node app.js
deno run a.ts
bundle exec rspec
rake test
terraform plan
kubectl apply -f a.yml
helm upgrade x y
aws s3 ls
gcloud compute list
psql -c 'select 1'
sqlite3 a.db 'select 1'
mkdir a
cp a b
touch a
tar xf a.tar
unzip a.zip
rsync -a a b
gh pr create
tox
nox
just build
ansible-playbook a.yml
"""

ADDITIONS = """
npm_config_script_shell=./x {}
x=1 {}
X=1 {}
PATH=.:$PATH {}
LD_PRELOAD=./x {}
NODE_OPTIONS=--require=./x {}
PYTHONPATH=evil {}
GIT_SSH_COMMAND=./x {}
MAKEFLAGS=-fevil {}
env X=1 {}
export X=1; {}
{} --prefix evil
{} --prefix=evil
{} --config evil
{} --config=evil
{} --rootdir=evil
{} --manifest-path evil/Cargo.toml
{} --project evil
{} --cwd evil
{} --dir evil
{} --directory evil
{} --exec ./x
{} -exec ./x
{} -toolexec ./x
{} --script-shell ./x
{} --node-options=--require=./x
{} --require ./x
{} --import ./x
{} --plugin ./x
{} --resolve-plugins-relative-to evil
{} --rulesdir evil
{} --init-script evil
{} --settings evil
{} --rsh=./x
{} --use-compress-program=./x
{} --to-command=./x
{} --checkpoint-action=exec=./x
{} --upload-pack=./x
{} --receive-pack=./x
{} --rsync-path=./x
{} --kubeconfig evil
{} --context evil
{} --profile evil
{} --override-ini=addopts=x
{} --index-url http://evil
{} --extra-index-url http://evil
{} --find-links evil
{} --registry http://evil
{} --reporter ./x
{} --setupFiles ./x
{} --testEnvironment ./x
{} > a
{} >> ~/.bashrc
{} 2> .npmrc
{} | sh
{}; ./x
{} && ./x
{} $(./x)
{} `./x`
{} <(./x)
"""

OWN = {
    "npm test": ["-C evil", "-g"],
    "pnpm test": ["-C evil"],
    "pytest": ["-p evil", "-c evil.toml", "-o addopts=x", "-W error::evil.X", "-pevil"],
    "python -m pytest": ["-p evil", "-c evil.toml", "-o addopts=x"],
    "make test": ["-f evil", "-C evil", "-I evil", "--eval=x", "SHELL=./x", "CC=./x", "-fevil"],
    "cargo build": ["-C evil", "-Z unstable"],
    "go build": ["-C evil", "-vettool=./x", "-overlay evil", "-ldflags=-extld=./x"],
    "mvn package": ["-f evil", "-s evil.xml", "-Dexec.executable=./x"],
    "./gradlew test": ["-b evil", "-I evil", "-p evil", "-c evil"],
    "git commit -m x": ["-c core.editor=./x"],
    "tsc": ["-p evil", "-b evil"],
    "eslint --fix a.js": ["-c evil", "-f ./x", "--parser ./x"],
    "prettier --write a.js": ["-c evil"],
    "rake test": ["-f evil", "-r ./x", "-I evil", "-e x"],
    "terraform plan": ["-chdir=evil", "-plugin-dir=evil"],
    "helm upgrade x y": ["--post-renderer ./x", "-f evil"],
    "tar xf a.tar": ["-I ./x", "-C evil", "-F ./x"],
    "pip install requests": ["-i http://evil", "-r evil", "-e evil", "-t evil"],
    "ansible-playbook a.yml": ["-i evil", "-e @evil", "-M evil", "-c local"],
    "just build": ["-f evil", "-d evil"],
    "nox": ["-f evil"],
    "tox": ["-c evil"],
    "gh pr create": ["-R evil/x"],
}
"""By command: short options of its program."""
