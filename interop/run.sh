#!/usr/bin/env bash
# The real engines on our bytes: see README.md. Everything it makes is below build/interop.
set -eu
cd "$(dirname "$0")/.."
. interop/versions.env
dir=$PWD/build/interop

command -v python3 >/dev/null || { echo "interop needs python3 (with venv)" >&2; exit 1; }
command -v npm >/dev/null || { echo "interop needs Node.js with npm" >&2; exit 1; }
interop/install.sh
mkdir -p "$dir/bin"
export LANCE_LOG=error
go build -o "$dir/bin/" ./cmd/foldline ./interop/tables ./interop/races

for pylance in "$PYLANCE_SAME_CORE" "$PYLANCE_NEWEST"; do
  python=$dir/pylance-$pylance/bin/python
  data=$dir/data-$pylance
  rm -rf "$data"
  mkdir -p "$data"
  echo "== tables of package lance, pylance $pylance"
  "$dir/bin/tables" "$data/tables"
  "$python" interop/check_tables.py "$data/tables" "$dir/node"
  echo "== races of package lance against pylance $pylance"
  same_core=$([ "$pylance" = "$PYLANCE_SAME_CORE" ] && echo yes || echo no)
  "$python" interop/check_races.py "$dir/bin/races" "$data/races" "$same_core"
  echo "== another program between two steps of a fold: pylance $pylance"
  PYLANCE_PYTHON=$python go test -count=1 -tags interop -run TestEngineOperation ./publisher
  echo "== a graph of foldline, pylance $pylance"
  "$python" interop/check_graph.py "$dir/bin/foldline" "$data/line" "$dir/node"
  echo "== tables of the engines, enrolled and merged into, pylance $pylance"
  "$python" interop/check_foreign.py "$dir/bin/foldline" "$data/foreign" "$dir/node"
  echo "== guards of what we lean on, pylance $pylance"
  "$python" interop/check_guards.py "$dir/bin/races" "$dir/bin/foldline" "$data/line" "$data/guards" "$dir/node" "$same_core"
done

echo "== data files: every shape, version and direction"
interop/shapes/run.sh "$dir"

echo "== objstore on Azurite"
AZURITE=$dir/node/node_modules/.bin/azurite-blob go test -count=1 -tags interop ./objstore/azurestore
