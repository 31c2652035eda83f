# The same checks in one awk process: what a tuned script can do.
#   find … -print0 | xargs -0 awk -v today=YYYY-MM-DD -v vocab=FILE -f health.awk
function flag(what) { print "FAIL " file ": " what; bad = 1 }
function days(d) { return int(mktime(substr(d, 1, 4) " " substr(d, 6, 2) " " substr(d, 9, 2) " 12 0 0") / 86400) }
function done() {
	if (file == "") return
	if (file ~ /MEMORY\.md$/ && n > 60) flag("more than 60 lines")
	if (file ~ /working-buffer\.md$/ && n > 80) flag("more than 80 lines")
	if (warm && (verified == "" || now - days(verified) >= 30)) flag("not verified")
	if (cold) {
		if (l1 !~ /^Updated: ./ || l2 !~ /^Decisions: ./ || l3 !~ /^Signal: ./ || l4 !~ /^Open: ./) flag("no closure block")
		base = file; sub(/.*\//, "", base)
		if (now - days(base) > 30) flag("older than 30 days")
	}
}
BEGIN { while ((getline t < vocab) > 0) known[t] = 1; now = days(today) }
FNR == 1 {
	done()
	file = FILENAME; n = 0; verified = ""
	warm = file ~ /memory\/(semantic|procedural)\//; cold = file ~ /memory\/episodic\//
}
FNR == 2 && (warm || file ~ /MEMORY\.md$/) {
	if ($0 !~ /^#tags:/) flag("no tags on line 2")
	k = split(substr($0, 7), tag, /[,| ]+/)
	for (i = 1; i <= k; i++) if (tag[i] != "" && !(tag[i] in known)) flag("unknown tag " tag[i])
}
/^last_verified:/ { if (verified == "") verified = $2 }
/AKIA[A-Z2-7]+|gh[pousr]_[A-Za-z0-9]+|sk-[A-Za-z0-9_-]+|PRIVATE KEY|(password|secret|token|api_key) *[:=]/ { flag("a credential") }
{ n++; l1 = l2; l2 = l3; l3 = l4; l4 = $0 }
END { done(); exit bad }
