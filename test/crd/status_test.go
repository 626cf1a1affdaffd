package crd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		p := places[folder][0]
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
