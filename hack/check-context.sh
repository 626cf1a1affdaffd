#!/usr/bin/env bash
# Succeeds if KUBECONFIG is set to one file whose current context is among the arguments. It keeps a manager that is being
# developed away from clusters that matter, so the default kubeconfig is not looked at.
set -euo pipefail

refuse() {
	echo "refused: $1" >&2
	exit 1
}

[ -n "${KUBECONFIG:-}" ] || refuse "set KUBECONFIG to the kubeconfig of a local cluster (make cluster prints one)"
[ -r "$KUBECONFIG" ] || refuse "cannot read KUBECONFIG=$KUBECONFIG; it must be one file"
context=$(sed -n 's/^current-context:[[:space:]]*//p' "$KUBECONFIG" | tr -d "\"'")
for allowed in "$@"; do
	if [ "$context" = "$allowed" ]; then
		exit 0
	fi
done
refuse "context \"$context\" is not in ALLOWED_CONTEXTS ($*)"
