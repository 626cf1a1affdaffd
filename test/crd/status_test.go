package crd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

// TestNewObjectsAreNotReady: without a status, health checks take an object that nobody has looked at for one that is
// done.
func TestNewObjectsAreNotReady(t *testing.T) {
	server := running(t)
	eachKind(t, func(t *testing.T, p place) {
		object := build(t, p, unique("new"), nil)
		server.create(t, object)
		want := map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": "Unknown", "reason": "Pending",
			"message": "Waiting for the operator", "lastTransitionTime": "1970-01-01T00:00:00Z",
		}}}
		if diff := cmp.Diff(want, object.Object["status"]); diff != "" {
			t.Errorf("status after create (-want +got):\n%s", diff)
		}
		read := server.get(t, object)
		if diff := cmp.Diff(want, read.Object["status"]); diff != "" {
			t.Errorf("status when read (-want +got):\n%s", diff)
		}
		health, err := status.Compute(read)
		if err != nil {
			t.Fatal(err)
		}
		if health.Status != status.InProgressStatus {
			t.Errorf("kstatus says %s, want %s", health.Status, status.InProgressStatus)
		}
	})
}

// TestTheOperatorTakesOverTheDefault: server-side apply of the whole status leaves nothing of the default.
func TestTheOperatorTakesOverTheDefault(t *testing.T) {
	server := running(t)
	eachKind(t, func(t *testing.T, p place) {
		object := build(t, p, unique("new"), nil)
		server.create(t, object)
		ready := map[string]any{
			"type": "Ready", "status": "True", "reason": "Ready", "message": "",
			"lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": int64(1),
		}
		wanted := map[string]any{"observedGeneration": int64(1), "conditions": []any{ready}}
		applied := build(t, p, object.GetName(), nil)
		applied.Object["status"] = wanted
		delete(applied.Object, "spec")
		err := server.client.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied),
			client.FieldOwner(v1alpha1.StatusFieldManager), client.ForceOwnership)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, server.get(t, object).Object["status"]); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
	})
}

// wholeStatus has every field that the operator can write.
var wholeStatus = map[string]any{
	v1alpha1.GpuPoolKind: &v1alpha1.GpuPoolStatus{
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
			LastTransitionTime: metav1.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC),
		}},
		ObservedGeneration: 1,
		DeviceClassName:    "h100.gpupool.dev",
		Nodes: &v1alpha1.PoolNodeCounts{
			Selected: ptr.To[int32](11), Publishing: ptr.To[int32](10), WithDevices: ptr.To[int32](0),
		},
		ResourcePools: &v1alpha1.ResourcePoolCounts{Total: ptr.To[int32](10), Incomplete: ptr.To[int32](0)},
		Devices: &v1alpha1.DeviceCounts{
			Total: ptr.To[int32](80), Allocated: ptr.To[int32](50), Available: ptr.To[int32](30), Unavailable: ptr.To[int32](0),
		},
		OutOfScope: ptr.To[int32](0),
		Models: []v1alpha1.ModelCounts{{
			Name: "NVIDIA H100 80GB HBM3", Total: ptr.To[int32](80), Allocated: ptr.To[int32](50), Available: ptr.To[int32](30),
		}},
		Excluded: []v1alpha1.ExcludedDevices{{Field: "devices.memory", Devices: 8, Detail: "81559Mi is below 80Gi"}},
		Claims:   &v1alpha1.ClaimCounts{Allocated: ptr.To[int32](7), Pending: ptr.To[int32](0)},
	},
	v1alpha1.WorkloadProfileKind: &v1alpha1.WorkloadProfileStatus{
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonForbidden,
			LastTransitionTime: metav1.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC),
		}},
		ObservedGeneration: 1,
		TemplateName:       "train",
		Namespaces: &v1alpha1.NamespaceCounts{
			Selected: ptr.To[int32](5), Published: ptr.To[int32](4),
			Failures: []v1alpha1.ReasonCount{{Reason: v1alpha1.ReasonForbidden, Count: 1}},
		},
		Claims:  &v1alpha1.ClaimCounts{Allocated: ptr.To[int32](7), Pending: ptr.To[int32](2)},
		Hazards: []v1alpha1.ReasonCount{{Reason: v1alpha1.HazardTakesWholeDevice, Count: 1}},
	},
}

// TestTheServerKeepsTheWholeStatus: a field that the schema lacks would be dropped, and one that it bounds too tightly
// would make the server refuse the whole status.
func TestTheServerKeepsTheWholeStatus(t *testing.T) {
	server := running(t)
	crds := read(t)
	eachKind(t, func(t *testing.T, p place) {
		whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wholeStatus[p.kind])
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		note(seen, "status", whole)
		for _, f := range crds[p.kind].Fields() {
			if strings.HasPrefix(f.Path, "status.") && !seen[f.Path] {
				t.Errorf("%s is not in this test", f.Path)
			}
		}
		object := build(t, p, unique("whole"), nil)
		server.create(t, object)
		server.setStatus(t, object, wholeStatus[p.kind])
		if diff := cmp.Diff(whole, server.get(t, object).Object["status"]); diff != "" {
			t.Errorf("status (-written +read):\n%s", diff)
		}
	})
}

// TestStatusIsNotTheUsers: whoever may write objects but not their status cannot make one look ready.
func TestStatusIsNotTheUsers(t *testing.T) {
	server := running(t)
	eachKind(t, func(t *testing.T, p place) {
		object := build(t, p, unique("new"), nil)
		object.Object["status"] = map[string]any{"observedGeneration": int64(7)}
		server.create(t, object)
		generation, found, err := unstructured.NestedInt64(server.get(t, object).Object, "status", "observedGeneration")
		if err != nil || found {
			t.Errorf("status.observedGeneration = %d, %v, want none", generation, err)
		}
	})
}

// eachKind runs a test for both kinds.
func eachKind(t *testing.T, test func(t *testing.T, p place)) {
	t.Helper()
	for _, folder := range []string{"gpupool", "workloadprofile"} {
		p := subjects[folder].places[0]
		t.Run(p.kind, func(t *testing.T) { test(t, p) })
	}
}

// get reads an object anew.
func (s *apiServer) get(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	read := &unstructured.Unstructured{}
	read.SetGroupVersionKind(object.GroupVersionKind())
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(object), read); err != nil {
		t.Fatal(err)
	}
	return read
}
