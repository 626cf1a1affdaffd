#!/usr/bin/env bash
# Runs a command in the folder of each Go module of the repository; fails if it failed in any.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
while read -r file; do
	if ! (cd "$(dirname "$file")" && "$@"); then
		echo "failed in $(dirname "$file"): $*" >&2
		failed=1
	fi
done < <(find . -name go.mod -not -path '*/testdata/*' | sort)
exit "$failed"
