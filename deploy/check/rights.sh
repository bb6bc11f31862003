#!/bin/sh
# Starts a process of another user, in a /tmp of its own, and tries rights.py on it with exactly the unit's
# rights, then without each capability. Prints which need asks for which capability.
#
#   rights.sh [COMMAND ...]     also runs COMMAND each time, e.g. `emberscope doctor`
set -eu
here=$(cd "$(dirname "$0")" && pwd)

# The target: uid 4242, a private /tmp with a file only it may read, SIGQUIT caught.
unshare --mount sh -c '
    mount -t tmpfs -o mode=1777 tmpfs /tmp
    exec setpriv --reuid 4242 --regid 4242 --clear-groups sh -c "
        umask 077; echo secret > /tmp/rights-\$\$; trap : QUIT; while :; do sleep 1; done"
' &
target=$!
trap 'kill $target' EXIT
sleep 1

"$here/least-privilege.sh" --each sh -c '
    here=$1 target=$2
    shift 2
    status=0
    python3 "$here/rights.py" "$target" || status=1
    if [ $# -gt 0 ]; then
        if "$@"; then echo "  ok      $*"; else echo "  REFUSED $*"; status=1; fi
    fi
    exit $status
' sh "$here" "$target" "$@"
