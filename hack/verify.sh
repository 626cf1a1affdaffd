#!/usr/bin/env bash
# Verifies the repository in three stages: write all that is generated, check without writing, and see whether the tree
# still is what git has. A failed step does not hide what the later ones find.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=()

step() {
	local name=$1 started=$SECONDS
	shift
	echo "--- $name"
	if "$@"; then
		echo "ok    $name ($((SECONDS - started))s)"
	else
		echo "FAIL  $name ($((SECONDS - started))s)"
		failed+=("$name")
	fi
}

# clean fails on a difference to what is committed or staged, and on files that git neither knows nor ignores.
clean() {
	local untracked
	untracked=$(git ls-files --others --exclude-standard)
	if [ -n "$untracked" ]; then
		printf 'not in git:\n%s\n' "$untracked"
	fi
	git --no-pager diff --stat --exit-code && [ -z "$untracked" ]
}

step "generate" make generate
step "format" make fmt

step "lint" make lint
step "vet" go vet ./...
step "tidy" hack/modules.sh go mod tidy -diff
step "docs" go run ./hack/docscheck .

step "clean tree" clean

if [ "${#failed[@]}" -gt 0 ]; then
	(IFS=,; echo "verify failed: ${failed[*]}")
	exit 1
fi
echo "verify passed"
