#!/bin/sh
# After the package is installed or upgraded: the service is known, and started again if it ran. It isn't begun unasked.
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
systemctl try-restart coxswain.service
