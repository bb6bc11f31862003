#!/bin/sh
# Runs a command as the systemd unit would: its user, its capabilities and no others, no new privileges,
# its system-call filter, its priority, a read-only disk, a /tmp of its own. For machines whose first process is not
# systemd. Needs root, util-linux (setpriv, unshare), python3, systemd-analyze.
#
#   least-privilege.sh [--user NAME|UID] [--data DIR] COMMAND [ARGUMENT ...]    runs it once
#   least-privilege.sh --each COMMAND [ARGUMENT ...]    then once without each capability, and says which
#                                                       of these runs failed
#
# Default user: nobody. DIR stays writable, as the unit's StateDirectory does.
set -eu
# The system's own programs: root's others may be out of reach for the user.
PATH=/usr/sbin:/usr/bin:/sbin:/bin

here=$(cd "$(dirname "$0")" && pwd)
unit=$here/../systemd/emberscope.service
user=nobody
data=
each=

while [ $# -gt 0 ]; do
    case $1 in
        --user) user=$2; shift 2 ;;
        --data) data=$2; shift 2 ;;
        --each) each=1; shift ;;
        *) break ;;
    esac
done
[ $# -gt 0 ] || { sed -n '2,12p' "$0" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "least-privilege.sh: must be root, to give its rights away" >&2; exit 2; }

# CAP_X CAP_Y -> +x,+y
capabilities() {
    sed -n 's/^AmbientCapabilities=//p' "$unit" | tr ' ' '\n' | grep -vxF "${1:-none}" |
        sed 's/^CAP_/+/' | tr 'A-Z\n' 'a-z,' | sed 's/,$//'
}

# run CAPABILITIES COMMAND ...
# One run takes this shell's place, so that a signal to it reaches the command.
run() {
    caps=$1
    shift
    $start unshare --mount --propagation private sh -eu -c '
        data=$1 user=$2 caps=$3 here=$4 unit=$5
        shift 5
        mount -t tmpfs tmpfs /tmp 2>/dev/null || { echo "cannot mount a /tmp" >&2; exit 3; }
        for dir in "$data"; do
            [ -z "$dir" ] || { mkdir -p "$dir"; mount --bind "$dir" "$dir"; chown "$user" "$dir"; }
        done
        mount -o remount,bind,ro /
        mount --bind /proc/sys /proc/sys
        mount -o remount,bind,ro /proc/sys
        mount -o remount,bind,ro /sys
        renice -n "$(sed -n "s/^Nice=//p" "$unit")" -p $$ >/dev/null
        exec setpriv --reuid "$user" --regid "$(id -g "$user" 2>/dev/null || echo "$user")" --clear-groups \
            --inh-caps "-all,$caps" --ambient-caps "-all,$caps" --bounding-set "-all,$caps" --no-new-privs \
            python3 "$here/seccomp-exec.py" "$unit" "$@"
    ' run "$data" "$user" "$caps" "$here" "$unit" "$@"
}

start=
if [ -z "$each" ]; then
    start=exec
    run "$(capabilities)" "$@"
fi

echo "with all of the unit's capabilities:"
run "$(capabilities)" "$@"
for cap in $(sed -n 's/^AmbientCapabilities=//p' "$unit"); do
    echo "without $cap:"
    if run "$(capabilities "$cap")" "$@"; then echo "  works"; else echo "  fails ($?)"; fi
done
