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
	if diff := cmp.Diff([]string{
		"gpu.amd.com", "gpu.example.com", "gpu.intel.com", "gpu.nvidia.com", "hami-core-gpu.project-hami.io", "tpu.google.com",
	}, embedded.Drivers()); diff != "" {
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
		"a property without a name":   {"a.yaml", "driver: a\ntypes: {Whole: []}\nproperties: {model: {since: \"1\"}}\n", "properties.model must have attribute"},
		"a version without a name":    {"a.yaml", "driver: a\ntypes: {Whole: []}\nproperties: {gpuDriverVersion: {}}\n", "properties.gpuDriverVersion must have attribute"},
		"half a joined property":      {"a.yaml", "driver: a\ntypes: {Whole: []}\nproperties: {model: {attribute: x, joined: [y]}}\n", "must be two attributes"},
		"memory from nowhere":         {"a.yaml", "driver: a\ntypes: {Whole: []}\nproperties: {memory: {}}\n", "properties.memory must have capacities"},
		"a rule for a missing type":   {"a.yaml", "driver: a\ntypes: {Whole: []}\nrules: {deviceClassNames: {Partition: x}}\n", "which types lacks"},
		"a mode that means nothing":   {"a.yaml", "driver: a\ntypes: {Whole: []}\nrules: {allocationMode: ExactCount}\n", "must be All"},
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
