package source

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/gpupool/gpupool-operator/internal/inventory"
)

const (
	nodeYAML = `apiVersion: v1
kind: Node
metadata: {name: a}
status: {conditions: [{type: Ready, status: "True"}]}
`
	sliceYAML = `apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a}
spec:
  driver: gpu.example.com
  pool: {name: a, generation: 1, resourceSliceCount: 1}
  nodeName: a
  devices: [{name: gpu-0}, {name: gpu-1}]
`
	claimYAML = `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {namespace: team-a, name: c, labels: {gpupool.dev/profile: train}}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: whole.gpu.example.com}}]}}
`
	podYAML = `apiVersion: v1
kind: Pod
metadata: {namespace: team-a, name: p}
spec: {resourceClaims: [{name: gpu, resourceClaimName: c}], containers: [{name: main, image: x}]}
`
	placedPodYAML = `apiVersion: v1
kind: Pod
metadata: {namespace: team-a, name: q}
spec: {nodeName: a, resourceClaims: [{name: gpu, resourceClaimName: c}]}
`
	ruleYAML = `apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: r}
spec: {deviceSelector: {device: gpu-1}, taint: {key: example.com/broken, effect: NoSchedule}}
`
	secretYAML = `apiVersion: v1
kind: Secret
metadata: {name: s}
`
	unknownYAML = `apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: h100}
`
)

// folder maps names to texts.
func folder(files map[string]string) fstest.MapFS {
	fs := fstest.MapFS{}
	for name, text := range files {
		fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

func documents(texts ...string) string { return strings.Join(texts, "---\n") }

// list makes a List of objects, as kubectl prints one.
func list(objects ...string) string {
	text := "apiVersion: v1\nkind: List\nitems:\n"
	for _, object := range objects {
		text += "- " + strings.ReplaceAll(strings.TrimSpace(object), "\n", "\n  ") + "\n"
	}
	return text
}

func TestReadFolder(t *testing.T) {
	want := inventory.PoolCounts{
		Nodes:         inventory.NodeCounts{Selected: 1, Publishing: 1, WithDevices: 1},
		ResourcePools: inventory.ResourcePoolCounts{Total: 1},
		Devices: &inventory.DeviceCounts{
			Total: 2, Available: 1, Unavailable: 1,
			UnavailableReasons: map[inventory.UnavailableReason]int{inventory.Tainted: 1},
		},
		Claims: inventory.ClaimCounts{Pending: 1},
	}
	for name, files := range map[string]map[string]string{
		"one file an object": {
			"node.yaml": nodeYAML, "slice.yml": sliceYAML, "claim.yaml": claimYAML, "pod.yaml": podYAML, "rule.yaml": ruleYAML,
		},
		"documents in one file, in folders": {
			"a/b/all.yaml": documents(nodeYAML, sliceYAML, claimYAML), "a/rest.yaml": documents(podYAML, ruleYAML),
		},
		"a list of everything": {"all.yaml": list(nodeYAML, sliceYAML, claimYAML, podYAML, ruleYAML)},
		"lists of one kind": {
			"slices.yaml": strings.Replace(list(sliceYAML), "apiVersion: v1\nkind: List", "apiVersion: resource.k8s.io/v1\nkind: ResourceSliceList", 1),
			"rest.yaml":   documents(nodeYAML, claimYAML, podYAML, ruleYAML),
		},
		"JSON": {
			"node.json": `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"},
				"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`,
			"rest.yaml": documents(sliceYAML, claimYAML, podYAML, ruleYAML),
		},
		"other kinds and files, comments and empty documents are ignored": {
			"README.md": "# not YAML: [",
			"all.yaml": documents("# a comment\n", nodeYAML, secretYAML, "\n", sliceYAML, unknownYAML, claimYAML,
				podYAML, placedPodYAML, ruleYAML),
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := inventory.New()
			if err := ReadFolder(folder(files), in, profileLabel); err != nil {
				t.Fatal(err)
			}
			got, known := in.PoolCounts(inventory.PoolQuery{Driver: driver, ClassName: class})
			if diff := cmp.Diff(want, got); diff != "" || !known {
				t.Errorf("known %v, counts (-want +got):\n%s", known, diff)
			}
			if claims, _ := in.ProfileClaims("train"); claims.Pending != 1 {
				t.Errorf("claims of the profile are %+v", claims)
			}
		})
	}
}

func TestReadFolderTakesThePlaceOfWhatWasThere(t *testing.T) {
	in := emptyInventory()
	in.Put(inventory.FromNode(newNode("b")))
	in.Put(inventory.FromSlice(newSlice("b", "gpu-0")))
	if err := ReadFolder(folder(map[string]string{"node.yaml": nodeYAML}), in, profileLabel); err != nil {
		t.Fatal(err)
	}
	if got := devices(t, in).Total; got != 0 {
		t.Errorf("%d devices are left", got)
	}
}

func TestReadFolderErrorsNameFileAndDocument(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"text that is no YAML": {
			documents(nodeYAML, "a: ["), []string{"bad.yaml, document 2:", "yaml"},
		},
		"an object without a kind": {
			documents("# a comment\n", nodeYAML, secretYAML, "metadata: {name: a}\n"), []string{"bad.yaml, document 3:", "Kind"},
		},
		"a field of the wrong type": {
			strings.Replace(sliceYAML, "generation: 1", "generation: one", 1), []string{"bad.yaml, document 1:", "generation"},
		},
		"a kind in a version that is not read": {
			strings.Replace(sliceYAML, "/v1", "/v1beta1", 1),
			[]string{"bad.yaml, document 1:", "ResourceSlice is of version resource.k8s.io/v1beta1; it must be resource.k8s.io/v1"},
		},
		"a kind in a version that nobody knows": {
			strings.Replace(sliceYAML, "/v1", "/v9", 1), []string{"bad.yaml, document 1:", "resource.k8s.io/v9"},
		},
		"an item of a list": {
			list(nodeYAML, "metadata: {name: a}\n"), []string{"bad.yaml, document 1: item 2:", "Kind"},
		},
		"an object that is there twice": {
			documents(podYAML, podYAML), []string{"bad.yaml, document 2: Pod team-a/p is there twice"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := emptyInventory()
			in.Put(inventory.FromNode(newNode("a")))
			in.Put(inventory.FromSlice(newSlice("a", "gpu-0")))
			err := ReadFolder(folder(map[string]string{"a-good.yaml": claimYAML, "bad.yaml": test.text}), in, profileLabel)
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
			if got := devices(t, in).Total; got != 1 {
				t.Errorf("the inventory has %d devices after the error", got)
			}
		})
	}
}

func TestReadFolderThatIsNotThere(t *testing.T) {
	missing, err := folder(nil).Sub("missing")
	if err != nil {
		t.Fatal(err)
	}
	if err := ReadFolder(missing, inventory.New(), profileLabel); err == nil {
		t.Error("no error")
	}
}
