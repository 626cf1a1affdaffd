package controllers_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/gpupool/gpupool-operator/"

// mayImport says which rooms a room may import, directly or by way of another. Data flows one way; a room that is not
// listed may import nothing of ours.
var mayImport = map[string][]string{
	"internal/catalog":  {"api/v1alpha1"},
	"internal/plan":     {"api/v1alpha1", "internal/catalog", "internal/inventory", "internal/selector"},
	"internal/snapshot": {"api/v1alpha1", "internal/catalog", "internal/inventory", "internal/plan", "internal/selector"},
	"internal/source":   {"internal/inventory"},
	"internal/status":   {"api/v1alpha1", "internal/catalog", "internal/inventory", "internal/plan", "internal/selector"},
	"controllers": {
		"api/v1alpha1", "api/v1alpha1/applyconfiguration", "internal/apply", "internal/catalog", "internal/inventory", "internal/plan",
		"internal/selector", "internal/snapshot", "internal/source", "internal/status",
	},
	"api/v1alpha1/applyconfiguration": {"api/v1alpha1"},
}

// TestRooms fails on an import that goes up the flow. What a pure room may import from elsewhere is the linter's
// business.
func TestRooms(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`,
		"../api/...", "../internal/...", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		path, deps, _ := strings.Cut(strings.TrimSpace(line), " ")
		room := roomOf(path)
		seen++
		for dep := range strings.FieldsSeq(deps) {
			of := roomOf(dep)
			if strings.HasPrefix(dep, module) && of != room && !slices.Contains(mayImport[room], of) {
				t.Errorf("%s must not import %s", room, of)
			}
		}
	}
	if seen < len(mayImport) {
		t.Errorf("saw %d packages, want at least %d", seen, len(mayImport))
	}
}

// roomOf is the room that a package belongs to: the generated apply configurations are one.
func roomOf(path string) string {
	room := strings.TrimPrefix(path, module)
	if strings.HasPrefix(room, "api/v1alpha1/applyconfiguration") {
		return "api/v1alpha1/applyconfiguration"
	}
	return room
}
