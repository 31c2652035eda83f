#!/bin/sh
# The checks of mem health that grep, sed and find can do, file by file, as the
# source describes them. A peer to measure against, not a replacement.
cd "$1" || exit 2
today=$(date -d "${2:-now}" +%s)
fail=0
bad() { fail=1; echo "FAIL $1: $2"; }
[ "$(wc -l <MEMORY.md)" -le 60 ] || bad MEMORY.md "more than 60 lines"
[ "$(wc -l <memory/working-buffer.md)" -le 80 ] || bad memory/working-buffer.md "more than 80 lines"
for f in MEMORY.md $(find memory/semantic memory/procedural -name '*.md'); do
	tags=$(sed -n 2p "$f")
	case $tags in
	'#tags:'*) ;;
	*) bad "$f" "no tags on line 2" ;;
	esac
	for t in $(echo "${tags#'#tags:'}" | tr ',|' '  '); do
		grep -qxF "$t" "$3" || bad "$f" "unknown tag $t"
	done
	[ "$f" = MEMORY.md ] && continue
	day=$(sed -n 's/^last_verified: *//p' "$f" | head -1)
	[ -n "$day" ] && [ $(((today - $(date -d "$day" +%s)) / 86400)) -lt 30 ] || bad "$f" "not verified"
done
for f in $(find memory/episodic -name '*.md'); do
	tail -4 "$f" | sed 1q | grep -q '^Updated: ..*' || bad "$f" "no closure block"
	tail -3 "$f" | sed 1q | grep -q '^Decisions: ..*' || bad "$f" "no closure block"
	tail -2 "$f" | sed 1q | grep -q '^Signal: ..*' || bad "$f" "no closure block"
	tail -1 "$f" | grep -q '^Open: ..*' || bad "$f" "no closure block"
	day=$(basename "$f" | cut -c1-10)
	[ $(((today - $(date -d "$day" +%s)) / 86400)) -le 30 ] || bad "$f" "older than 30 days"
done
for f in $(find . -name '*.md'); do
	grep -qE 'AKIA[A-Z2-7]{16}|gh[pousr]_[A-Za-z0-9]{36}|sk-[A-Za-z0-9_-]{32}|PRIVATE KEY|(password|secret|token|api_key) *[:=] *[^ ]{8}' "$f" && bad "$f" "a credential"
done
exit $fail
