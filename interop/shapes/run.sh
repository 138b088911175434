#!/usr/bin/env bash
# Every shape of data, every version, both directions, between the engine (LanceDB for Node) and us; then the
# engine's own operations on our files. The table goes to docs/lance-shapes.md.
#
#   interop/shapes/run.sh BUILD_DIR   the folder that interop/install.sh has filled
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$1/shapes
rm -rf "$dir"
mkdir -p "$dir" docs
go build -o "$1/bin/" ./interop/shapes
cp interop/shapes/*.mjs "$1/node/"
export SHAPES_DB=$dir/engine SHAPES_TXT=$dir/texts

node "$1/node/gen.mjs" 5000 >"$dir/gen.log" || { cat "$dir/gen.log"; exit 1; }
failed=0
"$1/bin/shapes" "$dir/engine" "$dir/texts" "$dir/ours" >"$dir/read.log" || failed=1
for version in 2.0 2.1 2.2; do
  node "$1/node/check.mjs" "$dir/ours/$version" >"$dir/check-$version.log" || failed=1
done
python3 interop/shapes/table.py "$dir" >docs/lance-shapes.md
cat docs/lance-shapes.md
grep -h FAIL "$dir"/*.log || true

echo "== the engine's operations on our files"
cp -r "$dir/ours/2.1" "$dir/operated"
node "$1/node/ops.mjs" "$dir/operated" | tee "$dir/ops.log" || failed=1
grep -q FAIL "$dir/ops.log" && failed=1
# What the engine made of our tables reads with as many rows.
grep '^rows' "$dir/ops.log" | while read -r _ table rows; do
  [ "$("$1/bin/shapes" -count "$dir/operated/$table")" = "$table $rows" ] || { echo "FAIL $table: not $rows rows"; exit 1; }
done
exit $failed
