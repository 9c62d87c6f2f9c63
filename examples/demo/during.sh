#!/usr/bin/env bash
# during.sh WHAT COMMAND [ARG...]: says what is done, runs the command, and goes on saying so, that nobody sits before a silent terminal.
what=$1
shift
every=${DURING_EVERY:-5}
echo "$what"
exec 4>&1
exec 3< <("$@" >&4; echo $?) # what is read from 3 is the command's status alone
while :; do
	if read -r -t "$every" -u 3 status; then
		break
	elif [ $? -le 128 ]; then
		status=1 # it ended without one
		break
	fi
	echo "  ... still at it after ${SECONDS} s"
done
if [ "$status" != 0 ]; then
	echo "  failed, after ${SECONDS} s: $what" >&2
else
	echo "  done, after ${SECONDS} s"
fi
exit "$status"
