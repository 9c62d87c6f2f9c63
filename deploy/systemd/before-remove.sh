#!/bin/sh
# Before the package is removed: the service ends. On an upgrade it runs on: dpkg says upgrade, rpm 1.
set -e
case "$1" in upgrade | 1) exit 0 ;; esac
[ -d /run/systemd/system ] || exit 0
systemctl disable --now coxswain.service
