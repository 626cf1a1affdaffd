package crd_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/ptr"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

// TestWordsOfKubectl looks words up as `kubectl get WORD NAME` does. A word that is a category is never looked up as a
// kind, and then a name cannot follow it.
func TestWordsOfKubectl(t *testing.T) {
	server := running(t)
	direct, err := discovery.NewDiscoveryClientForConfig(server.config)
	if err != nil {
		t.Fatal(err)
	}
	found := memory.NewMemCacheClient(direct)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(found), found, nil)
	categories := restmapper.NewDiscoveryCategoryExpander(found)
	for word, want := range map[string]string{
		"gpupool": "gpupools", "gpupools": "gpupools", "gpool": "gpupools", "GpuPool": "gpupools",
		"workloadprofile": "workloadprofiles", "workloadprofiles": "workloadprofiles", "wprof": "workloadprofiles",
		"WorkloadProfile": "workloadprofiles",
	} {
		t.Run(word, func(t *testing.T) {
			if members, isCategory := categories.Expand(word); isCategory {
				t.Errorf("it is the category of %v", members)
			}
			got, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: word})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(v1alpha1.GroupVersion.WithResource(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("the category", func(t *testing.T) {
		members, _ := categories.Expand("gpupool-dev")
		got := map[string]bool{}
		for _, member := range members {
			got[member.String()] = true
		}
		want := map[string]bool{"gpupools.gpupool.dev": true, "workloadprofiles.gpupool.dev": true}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("members (-want +got):\n%s", diff)
		}
	})
}

// TestColumns shows what `kubectl get` prints. Columns in brackets are those of -o wide.
func TestColumns(t *testing.T) {
	ready := []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
		LastTransitionTime: metav1.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC),
	}}
	for kind, test := range map[string]struct {
		resource string
		status   any
		want     []cell
	}{
		v1alpha1.GpuPoolKind: {
			resource: "gpupools",
			status: &v1alpha1.GpuPoolStatus{
				Conditions:      ready,
				DeviceClassName: "h100.gpupool.dev",
				Nodes: &v1alpha1.PoolNodeCounts{
					Selected: ptr.To[int32](11), Publishing: ptr.To[int32](10), WithDevices: ptr.To[int32](9),
				},
				Devices: &v1alpha1.DeviceCounts{
					Total: ptr.To[int32](80), Allocated: ptr.To[int32](50), Available: ptr.To[int32](29), Unavailable: ptr.To[int32](1),
				},
				Claims: &v1alpha1.ClaimCounts{Allocated: ptr.To[int32](7), Pending: ptr.To[int32](0)},
			},
			want: []cell{
				{"Name", "columns"},
				{"Ready", "True"},
				{"Driver", "gpu.example.com"},
				{"Total", 80.0},
				{"Allocated", 50.0},
				{"Available", 29.0},
				{"Pending", 0.0},
				{"[Class]", "h100.gpupool.dev"},
				{"[Nodes]", 11.0},
				{"[Reason]", "Ready"},
				{"Age", "new"},
			},
		},
		v1alpha1.WorkloadProfileKind: {
			resource: "workloadprofiles",
			status: &v1alpha1.WorkloadProfileStatus{
				Conditions:   ready,
				TemplateName: "train",
				Namespaces:   &v1alpha1.NamespaceCounts{Selected: ptr.To[int32](5), Published: ptr.To[int32](4)},
				Claims:       &v1alpha1.ClaimCounts{Allocated: ptr.To[int32](7), Pending: ptr.To[int32](2)},
			},
			want: []cell{
				{"Name", "columns"},
				{"Ready", "True"},
				{"Template", "train"},
				{"Namespaces", 4.0},
				{"Allocated", 7.0},
				{"Pending", 2.0},
				{"[Reason]", "Ready"},
				{"Age", "new"},
			},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			server := running(t)
			object := build(t, place{kind: kind}, "columns", nil)
			server.create(t, object)
			server.setStatus(t, object, test.status)
			if diff := cmp.Diff(test.want, server.row(t, test.resource, "columns")); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		})
	}
}

// cell is one column of one row.
type cell struct {
	Column string
	Value  any
}

func (s *apiServer) setStatus(t *testing.T, object *unstructured.Unstructured, status any) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		t.Fatal(err)
	}
	object.Object["status"] = content
	if err := s.client.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// row is an object as kubectl gets it for printing.
func (s *apiServer) row(t *testing.T, resource, name string) []cell {
	t.Helper()
	found, err := discovery.NewDiscoveryClientForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	content, err := found.RESTClient().Get().
		AbsPath("apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, resource, name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(content, table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("got %d rows, want one: %s", len(table.Rows), content)
	}
	cells := make([]cell, 0, len(table.ColumnDefinitions))
	for i, column := range table.ColumnDefinitions {
		shown := cell{column.Name, table.Rows[0].Cells[i]}
		if column.Priority > 0 {
			shown.Column = "[" + column.Name + "]"
		}
		if age, isText := shown.Value.(string); isText && column.Name == "Age" {
			if parsed, err := time.ParseDuration(age); err == nil && parsed < time.Minute {
				shown.Value = "new"
			}
		}
		cells = append(cells, shown)
	}
	return cells
}
