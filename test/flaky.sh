#!/usr/bin/env bash
# flaky.sh COUNT PACKAGE… runs the tests of packages COUNT times with the race detector, and says which failed how often. Each second run is
# starved: one processor (GOMAXPROCS=1), busy loops beside it, and processes of the test that are stopped for a second at random.
# Logs of runs that failed stay in the folder that it names. It ends with 1 if any failed. RUN=REGEXP: those tests alone.
set -uo pipefail
count=$1; shift
logs=$(mktemp -d "${TMPDIR:-/tmp}/flaky-XXXXXX")
bad=0

# descendants of a process, and itself.
family() { local p; echo "$1"; for p in $(pgrep -P "$1"); do family "$p"; done; }

starve() { # while the process lives
	local busy=() victim
	for _ in 1 2; do (while :; do :; done) & busy+=($!); done
	while kill -0 "$1" 2>/dev/null; do
		victim=$(family "$1" | shuf -n 1)
		kill -STOP "$victim" 2>/dev/null && sleep 1 && kill -CONT "$victim" 2>/dev/null
		sleep "$((RANDOM % 4 + 1))"
	done
	kill "${busy[@]}" 2>/dev/null
	wait "${busy[@]}" 2>/dev/null
}

for ((i = 1; i <= count; i++)); do
	log=$logs/$i.log how=calm
	if ((i % 2 == 0)); then
		how=starved
		GOMAXPROCS=1 go test -race -vet=off -count=1 -timeout 30m ${RUN:+-run "$RUN"} "$@" >"$log" 2>&1 &
		pid=$!
		starve $pid
	else
		go test -race -vet=off -count=1 -timeout 30m ${RUN:+-run "$RUN"} "$@" >"$log" 2>&1 &
		pid=$!
	fi
	if wait $pid; then
		echo "$i of $count, $how: ok"
		rm -f "$log"
	else
		bad=$((bad + 1))
		echo "$i of $count, $how: FAILED: $(grep -E '^ *--- FAIL|^panic:|^FAIL' "$log" | head -5 | tr '\n' ';')"
	fi
done
if ((bad > 0)); then
	echo "$bad of $count failed; logs are in $logs"
	exit 1
fi
rmdir "$logs"
echo "all of $count passed"
