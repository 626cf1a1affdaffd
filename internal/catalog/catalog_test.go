package catalog_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/gpupool/gpupool-operator/internal/catalog"
)

func TestEmbedded(t *testing.T) {
	embedded, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"gpu.example.com", "gpu.nvidia.com"}, embedded.Drivers()); diff != "" {
		t.Errorf("drivers (-want +got):\n%s", diff)
	}
	if embedded.Entry("gpu.nvidia.com") == nil || embedded.Entry("unknown.example.com") != nil {
		t.Error("Entry must return the known drivers and nil for others")
	}
}

func TestLoadRefuses(t *testing.T) {
	tests := map[string]struct{ file, content, want string }{
		"a field that does not exist": {"a.yaml", "driver: a\nmodle: x\n", `unknown field "modle"`},
		"a file named otherwise":      {"b.yaml", "driver: a\ntypes: {Whole: [{name: x, operator: Exists}]}\n", "must be named a.yaml"},
		"no whole device":             {"a.yaml", "driver: a\ntypes: {Partition: [{name: x, operator: Exists}]}\n", "what a Whole device is"},
		"a type that does not exist":  {"a.yaml", "driver: a\ntypes: {Whole: [{name: x, operator: Exists}], Any: []}\n", `must not have "Any"`},
		"half a requirement":          {"a.yaml", "driver: a\ntypes: {Whole: [{name: x}]}\n", "must have name and operator"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := catalog.Load(fstest.MapFS{tc.file: {Data: []byte(tc.content)}})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.file) {
				t.Errorf("got %v, want an error that names %s and says %q", err, tc.file, tc.want)
			}
		})
	}
}
