#!/usr/bin/env bash
# Installs the engines into build/interop; what is there already in the wanted version is kept.
# With "python" as its argument, those for Python alone.
set -eu
cd "$(dirname "$0")/.."
. interop/versions.env
dir=$PWD/build/interop

python=${PYTHON:-python3}
for pylance in "$PYLANCE_SAME_CORE" "$PYLANCE_NEWEST"; do
  venv=$dir/pylance-$pylance
  wanted="pylance==$pylance pyarrow==$PYARROW nats-py==$NATS_PY"
  [ "$(cat "$venv/installed" 2>/dev/null)" = "$wanted" ] && continue
  rm -rf "$venv"
  mkdir -p "$dir"
  "$python" -m venv "$venv"
  # shellcheck disable=SC2086 # several packages
  "$venv/bin/pip" install --quiet --disable-pip-version-check $wanted
  echo "$wanted" >"$venv/installed"
done

[ "${1:-}" = python ] && exit 0

node=$dir/node
wanted="@lancedb/lancedb@$LANCEDB apache-arrow@$APACHE_ARROW azurite@$AZURITE"
if [ "$(cat "$node/installed" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$node"
  mkdir -p "$node"
  # Not npm ci: the platform's own package of LanceDB is an optional dependency that a lock file made on
  # another platform leaves out.
  # shellcheck disable=SC2086 # several packages
  (cd "$node" && echo '{"private": true}' >package.json && npm install --exact --no-audit --no-fund --loglevel=error $wanted)
  echo "$wanted" >"$node/installed"
fi
