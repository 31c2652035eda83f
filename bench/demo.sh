#!/bin/sh
# The main job on a new workspace: init, 90 lines of work, rotate.
set -eu
mem=$1
dir=$2
if [ -e "$dir" ]; then
	echo "$dir is there already: make clean removes it" >&2
	exit 1
fi
case $mem in /*) ;; *) mem=$PWD/$mem ;; esac
say() { printf '\n$ %s\n' "$*"; }

say mem init "$dir"
"$mem" init "$dir"
cd "$dir"
say mem health
"$mem" health
say 'mem note "started on the demo"'
"$mem" note "started on the demo"
say '(an agent writes 90 lines into memory/working-buffer.md)'
i=1
while [ "$i" -le 90 ]; do
	echo "- step $i: looked, decided, went on" >>memory/working-buffer.md
	i=$((i + 1))
done
say mem status
"$mem" status
say mem health
"$mem" health || true
say mem rotate
"$mem" rotate
say mem health
"$mem" health
say "head -n 8 memory/episodic/*.md"
head -n 8 memory/episodic/*.md
echo ...
say "tail -n 7 memory/episodic/*.md"
tail -n 7 memory/episodic/*.md
say cat memory/working-buffer.md
cat memory/working-buffer.md
say mem receipts
"$mem" receipts
