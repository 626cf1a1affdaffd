package fakedriver

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

const twoSlices = `# A comment before the first document.
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
spec:
  driver: replaced.example.com
  nodeName: ${node}
  pool: {name: "${node}"}
  sharedCounters:
  - name: gpu-0-counters
    counters:
      memory: {value: "80Gi"}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
spec:
  driver: replaced.example.com
  nodeName: ${node}
  pool: {name: "${node}"}
  devices:
  - name: gpu-0
    attributes:
      uuid: {string: "GPU-${uuid:gpu-0}"}
      resource.kubernetes.io/pciBusID: {string: "${pci:27}"}
  - name: gpu-1
`

const sharedSlice = `apiVersion: resource.k8s.io/v1
kind: ResourceSlice
spec:
  driver: replaced.example.com
  allNodes: true
  pool: {name: fabric}
  devices:
  - name: port-0
  - name: port-1
`

func mustParse(t *testing.T, text string) *Shape {
	t.Helper()
	shape, err := ParseShape("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return shape
}

func TestRender(t *testing.T) {
	got, err := mustParse(t, twoSlices).Render("gpu.example.com", "node-7")
	if err != nil {
		t.Fatal(err)
	}
	slice := func(spec resourcev1.ResourceSliceSpec) resourcev1.ResourceSlice {
		var s resourcev1.ResourceSlice
		s.APIVersion, s.Kind = "resource.k8s.io/v1", "ResourceSlice"
		spec.Driver = "gpu.example.com"
		spec.NodeName = ptr.To("node-7")
		spec.Pool = resourcev1.ResourcePool{Name: "node-7", ResourceSliceCount: 2}
		s.Spec = spec
		return s
	}
	want := []resourcev1.ResourceSlice{
		slice(resourcev1.ResourceSliceSpec{SharedCounters: []resourcev1.CounterSet{{
			Name:     "gpu-0-counters",
			Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("80Gi")}},
		}}}),
		slice(resourcev1.ResourceSliceSpec{Devices: []resourcev1.Device{
			{
				Name: "gpu-0",
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"uuid":                            {StringValue: ptr.To("GPU-7680ad63-2db9-5fbb-ad72-0e57380df64c")},
					"resource.kubernetes.io/pciBusID": {StringValue: ptr.To("3cf5:1b:00.0")},
				},
			},
			{Name: "gpu-1"},
		}}),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
}

func TestParseShapeRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want string
	}{
		"nothing":                     {text: "# only a comment\n", want: "has no ResourceSlice"},
		"another kind":                {text: strings.Replace(sharedSlice, "kind: ResourceSlice", "kind: Pod", 1), want: "want kind ResourceSlice"},
		"an older version":            {text: strings.Replace(sharedSlice, "io/v1", "io/v1beta1", 1), want: "want kind ResourceSlice of resource.k8s.io/v1"},
		"a misspelt field":            {text: strings.Replace(sharedSlice, "allNodes", "allNode", 1), want: `unknown field "allNode"`},
		"an unknown placeholder":      {text: strings.Replace(sharedSlice, "port-0", "${rack}", 1), want: "unknown placeholder ${rack}"},
		"a bus number out of range":   {text: strings.Replace(twoSlices, "pci:27", "pci:256", 1), want: "want a bus number from 0 to 255"},
		"a node's name in full":       {text: strings.Replace(twoSlices, "nodeName: ${node}", "nodeName: node-1x", 2), want: "nodeName must be ${node}"},
		"a slice without a pool name": {text: strings.Replace(sharedSlice, "{name: fabric}", "{}", 1), want: "the same pool name"},
		"two pools":                   {text: strings.Replace(twoSlices, `pool: {name: "${node}"}`, "pool: {name: other}", 1), want: "the same pool name"},
		"local and shared slices":     {text: strings.Replace(twoSlices, "nodeName: ${node}", "allNodes: true", 1), want: "all slices have a nodeName or none"},
		"a shared pool for each node": {text: strings.Replace(sharedSlice, "fabric", `"${node}"`, 1), want: "must not depend on the node"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseShape("test", []byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("err = %v, want it to say %q", err, test.want)
			}
		})
	}
}

func TestBuiltinShapes(t *testing.T) {
	if len(BuiltinShapes()) < 17 {
		t.Fatalf("only %d shapes: %v", len(BuiltinShapes()), BuiltinShapes())
	}
	for _, name := range BuiltinShapes() {
		t.Run(name, func(t *testing.T) {
			shape, err := LoadShape(name)
			if err != nil {
				t.Fatal(err)
			}
			rendered, err := shape.Render("driver.example.com", "node-1")
			if err != nil {
				t.Fatal(err)
			}
			var devices []string
			for _, slice := range rendered {
				if slice.Spec.Pool.ResourceSliceCount != int64(len(rendered)) {
					t.Errorf("announces %d slices of %d", slice.Spec.Pool.ResourceSliceCount, len(rendered))
				}
				for _, device := range slice.Spec.Devices {
					devices = append(devices, device.Name)
				}
			}
			slices.Sort(devices)
			if len(slices.Compact(slices.Clone(devices))) != len(devices) || len(devices) == 0 {
				t.Errorf("devices are not unique, or there are none: %v", devices)
			}
		})
	}
}

func TestGeneratedIdentitiesAreUniqueAndStable(t *testing.T) {
	for name, count := range map[string]int{
		"nvidia-h100-8": 8, "nvidia-a100-8": 8, "nvidia-l4-4": 4, "nvidia-t4-4": 4, "example-gpu-4": 4,
	} {
		t.Run(name, func(t *testing.T) {
			shape, err := LoadShape(name)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, node := range []string{"node-1", "node-2", "node-1"} {
				rendered, err := shape.Render("gpu.example.com", node)
				if err != nil {
					t.Fatal(err)
				}
				for _, device := range rendered[0].Spec.Devices {
					seen[*device.Attributes["uuid"].StringValue] = true
				}
			}
			if len(seen) != 2*count {
				t.Errorf("%d uuids on two nodes, want %d", len(seen), 2*count)
			}
		})
	}
}
