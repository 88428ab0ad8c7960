# SPDX-License-Identifier: GPL-2.0-or-later
# An experiment's name, and the first sentence of its `question:` that asks something. For `make help`, which must work before anything
# is installed that could read YAML.
/^question:/ { inside = 1; sub(/^question:[ >|-]*/, "") }
inside && /^[a-z]+:/ { exit }
inside { sub(/^ +/, ""); text = text " " $0 }
END {
	while (match(text, /[^.?]*[.?]/)) {
		sentence = substr(text, RSTART, RLENGTH)
		text = substr(text, RSTART + RLENGTH)
		if (sentence ~ /[?]$/)
			break
	}
	sub(/^ +/, "", sentence)
	printf "  %-18s %s\n", name, sentence
}
