package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/inventory"
	"github.com/gpupool/gpupool-operator/internal/plan"
	"github.com/gpupool/gpupool-operator/internal/status"
)

var now = time.Date(2026, 12, 1, 10, 0, 0, 123, time.UTC)

func TestPoolConditions(t *testing.T) {
	published := status.Child{Reason: v1alpha1.ReasonPublished}
	counts := func(selected, publishing int) *inventory.PoolCounts {
		return &inventory.PoolCounts{Nodes: inventory.NodeCounts{Selected: selected, Publishing: publishing}}
	}
	tests := map[string]struct {
		minReadyNodes *int32
		refused       *plan.Finding
		withoutName   *plan.Finding
		class         status.Child
		counts        *inventory.PoolCounts
		want          []string
	}{
		"all is well": {
			class: published, counts: counts(3, 1),
			want: []string{"Accepted=True/Accepted", "ClassPublished=True/Published", "DriverReady=True/Publishing", "Ready=True/Ready", "InventoryComplete=True/Complete", "DevicesFound=False/NoMatchingDevice"},
		},
		"the cluster is not read yet": {
			class: published,
			want: []string{
				"Accepted=True/Accepted", "ClassPublished=True/Published", "DriverReady=Unknown/Syncing",
				"Ready=Unknown/Syncing", "Reconciling=True/Syncing", "InventoryComplete=Unknown/Syncing", "DevicesFound=Unknown/Syncing",
			},
		},
		"an incomplete resource pool leaves Ready alone": {
			class: published, counts: &inventory.PoolCounts{
				Nodes: inventory.NodeCounts{Selected: 1, Publishing: 1}, ResourcePools: inventory.ResourcePoolCounts{Total: 1, Incomplete: 1},
			},
			want: []string{"Accepted=True/Accepted", "ClassPublished=True/Published", "DriverReady=True/Publishing", "Ready=True/Ready", "InventoryComplete=False/Incomplete", "DevicesFound=False/NoMatchingDevice"},
		},
		"a refused spec stalls, and its published class stays": {
			refused: &plan.Finding{Reason: v1alpha1.ReasonInvalidSelector, Message: "spec.devices: no"}, class: published,
			want: []string{
				"Accepted=False/InvalidSelector", "ClassPublished=True/Published", "DriverReady=Unknown/NotAccepted",
				"Ready=False/InvalidSelector", "Stalled=True/InvalidSelector", "InventoryComplete=Unknown/NotAccepted", "DevicesFound=Unknown/NotAccepted",
			},
		},
		"a refused spec that never published": {
			refused: &plan.Finding{Reason: v1alpha1.ReasonUnknownDeviceProperty}, class: status.Child{Reason: v1alpha1.ReasonNotAccepted},
			want: []string{
				"Accepted=False/UnknownDeviceProperty", "ClassPublished=False/NotAccepted", "DriverReady=Unknown/NotAccepted",
				"Ready=False/UnknownDeviceProperty", "Stalled=True/UnknownDeviceProperty", "InventoryComplete=Unknown/NotAccepted", "DevicesFound=Unknown/NotAccepted",
			},
		},
		"a taken name stalls even while the driver is awaited": {
			class: status.Child{Reason: v1alpha1.ReasonNameTaken}, counts: counts(3, 0),
			want: []string{
				"Accepted=True/Accepted", "ClassPublished=False/NameTaken", "DriverReady=False/NotPublishing",
				"Ready=False/NameTaken", "Stalled=True/NameTaken", "InventoryComplete=True/Complete", "DevicesFound=False/NoMatchingDevice",
			},
		},
		"a failed write is tried again": {
			class: status.Child{Reason: v1alpha1.ReasonApplyFailed, Detail: "admission refused it"}, counts: counts(1, 1),
			want: []string{
				"Accepted=True/Accepted", "ClassPublished=False/ApplyFailed", "DriverReady=True/Publishing",
				"Ready=False/ApplyFailed", "Reconciling=True/ApplyFailed", "InventoryComplete=True/Complete", "DevicesFound=False/NoMatchingDevice",
			},
		},
		"suspended before anything was written": {
			class: status.Child{Reason: v1alpha1.ReasonSuspended}, counts: counts(1, 1),
			want: []string{
				"Accepted=True/Accepted", "ClassPublished=False/Suspended", "DriverReady=True/Publishing",
				"Ready=False/Suspended", "Reconciling=True/Suspended", "InventoryComplete=True/Complete", "DevicesFound=False/NoMatchingDevice",
			},
		},
		"no node is selected": {
			class: published, counts: counts(0, 0),
			want: []string{
				"Accepted=True/Accepted", "ClassPublished=True/Published", "DriverReady=False/TooFewNodes",
				"Ready=False/TooFewNodes", "Reconciling=True/TooFewNodes", "InventoryComplete=True/Complete", "DevicesFound=False/NoMatchingDevice",
			},
		},
		"the extended resource name is somebody else's: published without it": {
			class: published, counts: counts(1, 1), withoutName: &plan.Finding{Reason: v1alpha1.ReasonExtendedResourceNameTaken, Message: "m"},
			want: []string{
				"Accepted=True/Accepted", "ClassPublished=False/ExtendedResourceNameTaken", "DriverReady=True/Publishing",
				"Ready=False/ExtendedResourceNameTaken", "Stalled=True/ExtendedResourceNameTaken",
				"InventoryComplete=True/Complete", "DevicesFound=False/NoMatchingDevice",
			},
		},
		"the server does not know extended resource names": {
			class: status.Child{Reason: v1alpha1.ReasonFeatureUnavailable}, counts: counts(1, 1),
			want: []string{
				"Accepted=True/Accepted", "ClassPublished=True/FeatureUnavailable", "DriverReady=True/Publishing", "Ready=True/Ready",
				"InventoryComplete=True/Complete", "DevicesFound=False/NoMatchingDevice",
			},
		},
		"devices are found": {
			class: published, counts: &inventory.PoolCounts{Nodes: inventory.NodeCounts{Selected: 1, Publishing: 1, WithDevices: 1}},
			want: []string{
				"Accepted=True/Accepted", "ClassPublished=True/Published", "DriverReady=True/Publishing", "Ready=True/Ready",
				"InventoryComplete=True/Complete", "DevicesFound=True/Found",
			},
		},
		"no node is selected and none is needed": {
			class: published, counts: counts(0, 0), minReadyNodes: ptr.To(int32(0)),
			want: []string{"Accepted=True/Accepted", "ClassPublished=True/Published", "DriverReady=True/NoNodes", "Ready=True/Ready", "InventoryComplete=True/Complete", "DevicesFound=False/NoMatchingDevice"},
		},
		"fewer nodes publish than are needed": {
			class: published, counts: counts(5, 2), minReadyNodes: ptr.To(int32(3)),
			want: []string{
				"Accepted=True/Accepted", "ClassPublished=True/Published", "DriverReady=False/TooFewNodes",
				"Ready=False/TooFewNodes", "Reconciling=True/TooFewNodes", "InventoryComplete=True/Complete", "DevicesFound=False/NoMatchingDevice",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pool := &v1alpha1.GpuPool{Spec: v1alpha1.GpuPoolSpec{Driver: v1alpha1.Driver{Name: "gpu.nvidia.com"}}}
			if tc.minReadyNodes != nil {
				pool.Spec.Nodes = &v1alpha1.NodeSelection{MinReadyNodes: tc.minReadyNodes}
			}
			got := status.ForPool(status.PoolInputs{
				Pool: pool, Plan: plan.Pool{ClassName: "h100.gpupool.dev", Refused: tc.refused, WithoutName: tc.withoutName}, Class: tc.class, Counts: tc.counts, Now: now,
			})
			if diff := cmp.Diff(tc.want, brief(got.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			checkMessages(t, got.Conditions)
		})
	}
}

func TestPoolCounts(t *testing.T) {
	in := status.PoolInputs{
		Pool: &v1alpha1.GpuPool{}, Plan: plan.Pool{ClassName: "h100.gpupool.dev"}, Class: status.Child{Reason: v1alpha1.ReasonPublished}, Now: now,
		Counts: &inventory.PoolCounts{
			Nodes:         inventory.NodeCounts{Selected: 4, Publishing: 3, WithDevices: 2},
			ResourcePools: inventory.ResourcePoolCounts{Total: 3, Incomplete: 1},
			Devices:       &inventory.DeviceCounts{Total: 16, Allocated: 8, Available: 5, Unavailable: 3},
			Models: []inventory.ModelCounts{
				{Name: "A2", Total: 2, Available: 2}, {Name: "H100", Total: 12, Allocated: 8, Available: 3}, {Name: "T4", Total: 2},
			},
			OutOfScope: 7,
			Claims:     inventory.ClaimCounts{Allocated: 1, Pending: 1 << 40},
		},
	}
	got := status.ForPool(in)
	got.Conditions = nil
	want := v1alpha1.GpuPoolStatus{
		DeviceClassName: "h100.gpupool.dev",
		Nodes:           &v1alpha1.PoolNodeCounts{Selected: ptr.To(int32(4)), Publishing: ptr.To(int32(3)), WithDevices: ptr.To(int32(2))},
		ResourcePools:   &v1alpha1.ResourcePoolCounts{Total: ptr.To(int32(3)), Incomplete: ptr.To(int32(1))},
		Devices: &v1alpha1.DeviceCounts{
			Total: ptr.To(int32(16)), Allocated: ptr.To(int32(8)), Available: ptr.To(int32(5)), Unavailable: ptr.To(int32(3)),
		},
		OutOfScope: ptr.To(int32(7)),
		Models: []v1alpha1.ModelCounts{
			{Name: "H100", Total: ptr.To(int32(12)), Allocated: ptr.To(int32(8)), Available: ptr.To(int32(3))},
			{Name: "A2", Total: ptr.To(int32(2)), Allocated: ptr.To(int32(0)), Available: ptr.To(int32(2))},
			{Name: "T4", Total: ptr.To(int32(2)), Allocated: ptr.To(int32(0)), Available: ptr.To(int32(0))},
		},
		Claims: &v1alpha1.ClaimCounts{Allocated: ptr.To(int32(1)), Pending: ptr.To(int32(1<<31 - 1))},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	in.Counts.Devices = nil
	if got := status.ForPool(in); got.Devices != nil {
		t.Errorf("devices are %v, want them unset: a sum of overlapping devices means nothing", got.Devices)
	}
}

func TestProfile(t *testing.T) {
	children := func(reasons ...string) []status.Child {
		var list []status.Child
		for _, reason := range reasons {
			list = append(list, status.Child{Reason: reason})
		}
		return list
	}
	published, taken, failed, forbidden := v1alpha1.ReasonPublished, v1alpha1.ReasonNameTaken, v1alpha1.ReasonApplyFailed, v1alpha1.ReasonForbidden
	tests := map[string]struct {
		plan      plan.Profile
		templates []status.Child
		want      []string
		selected  int32
		published int32
		failures  []v1alpha1.ReasonCount
	}{
		"published everywhere": {
			plan: plan.Profile{Selected: []string{"a", "b"}}, templates: children(published, published),
			want: []string{"Accepted=True/Accepted", "TemplatesPublished=True/Published", "Ready=True/Ready"}, selected: 2, published: 2,
		},
		"no namespace": {
			want: []string{"Accepted=True/Accepted", "TemplatesPublished=True/NoNamespaces", "Ready=True/Ready"},
		},
		"a listed namespace does not exist": {
			plan: plan.Profile{Selected: []string{"a"}, Missing: []string{"b"}}, templates: children(published),
			want:     []string{"Accepted=True/Accepted", "TemplatesPublished=False/NamespaceNotFound", "Ready=False/NamespaceNotFound", "Reconciling=True/NamespaceNotFound"},
			selected: 2, published: 1, failures: []v1alpha1.ReasonCount{{Reason: v1alpha1.ReasonNamespaceNotFound, Count: 1}},
		},
		"the commonest failure gives the reason, and what may heal keeps it from stalling": {
			plan: plan.Profile{Selected: []string{"a", "b", "c", "d"}}, templates: children(taken, failed, taken, published),
			want:     []string{"Accepted=True/Accepted", "TemplatesPublished=False/NameTaken", "Ready=False/NameTaken", "Reconciling=True/NameTaken"},
			selected: 4, published: 1, failures: []v1alpha1.ReasonCount{{Reason: taken, Count: 2}, {Reason: failed, Count: 1}},
		},
		"only what a user must mend is left": {
			plan: plan.Profile{Selected: []string{"a", "b", "c"}}, templates: children(taken, forbidden, published),
			want:     []string{"Accepted=True/Accepted", "TemplatesPublished=False/Forbidden", "Ready=False/Forbidden", "Stalled=True/Forbidden"},
			selected: 3, published: 1, failures: []v1alpha1.ReasonCount{{Reason: forbidden, Count: 1}, {Reason: taken, Count: 1}},
		},
		"older templates stay where the spec asks for it": {
			plan: plan.Profile{Selected: []string{"a", "b"}}, templates: children(published, v1alpha1.ReasonOutOfDate),
			want:     []string{"Accepted=True/Accepted", "TemplatesPublished=True/OutOfDate", "Ready=True/Ready"},
			selected: 2, published: 1, failures: []v1alpha1.ReasonCount{{Reason: v1alpha1.ReasonOutOfDate, Count: 1}},
		},
		"and hide no failure": {
			plan: plan.Profile{Selected: []string{"a", "b", "c"}}, templates: children(v1alpha1.ReasonOutOfDate, v1alpha1.ReasonOutOfDate, taken),
			want:     []string{"Accepted=True/Accepted", "TemplatesPublished=False/NameTaken", "Ready=False/NameTaken", "Stalled=True/NameTaken"},
			selected: 3, published: 0, failures: []v1alpha1.ReasonCount{{Reason: taken, Count: 1}, {Reason: v1alpha1.ReasonOutOfDate, Count: 2}},
		},
		"a namespace lacks the label for adminAccess": {
			plan: plan.Profile{Selected: []string{"a"}, NotAllowed: []string{"b"}}, templates: children(published),
			want:     []string{"Accepted=True/Accepted", "TemplatesPublished=False/AdminAccessNotAllowed", "Ready=False/AdminAccessNotAllowed", "Stalled=True/AdminAccessNotAllowed"},
			selected: 2, published: 1, failures: []v1alpha1.ReasonCount{{Reason: v1alpha1.ReasonAdminAccessNotAllowed, Count: 1}},
		},
		"waiting for a pool does not stall": {
			plan:      plan.Profile{Selected: []string{"a"}, Refused: &plan.Finding{Reason: v1alpha1.ReasonPoolNotFound, Message: "m"}},
			templates: children(v1alpha1.ReasonNotAccepted),
			want:      []string{"Accepted=False/PoolNotFound", "TemplatesPublished=False/NotAccepted", "Ready=False/PoolNotFound", "Reconciling=True/PoolNotFound"},
			selected:  1, failures: []v1alpha1.ReasonCount{{Reason: v1alpha1.ReasonNotAccepted, Count: 1}},
		},
		"a profile whose pool is gone keeps its templates": {
			plan:      plan.Profile{Selected: []string{"a"}, Refused: &plan.Finding{Reason: v1alpha1.ReasonPoolNotFound, Message: "m"}},
			templates: children(published),
			want:      []string{"Accepted=False/PoolNotFound", "TemplatesPublished=True/Published", "Ready=False/PoolNotFound", "Reconciling=True/PoolNotFound"},
			selected:  1, published: 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.plan.TemplateName = "train"
			got := status.ForProfile(status.ProfileInputs{
				Profile: &v1alpha1.WorkloadProfile{}, Plan: tc.plan, Templates: tc.templates, Now: now,
			})
			if diff := cmp.Diff(tc.want, brief(got.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			checkMessages(t, got.Conditions)
			want := &v1alpha1.NamespaceCounts{Selected: &tc.selected, Published: &tc.published, Failures: tc.failures}
			if want.Failures == nil {
				want.Failures = []v1alpha1.ReasonCount{}
			}
			if diff := cmp.Diff(want, got.Namespaces); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
			if got.Claims != nil {
				t.Errorf("claims are %v before the cluster was read, want them unset", got.Claims)
			}
		})
	}
}

func TestProfileHazards(t *testing.T) {
	got := status.ForProfile(status.ProfileInputs{Profile: &v1alpha1.WorkloadProfile{}, TakeWhole: 2, Now: now})
	want := []v1alpha1.ReasonCount{{Reason: v1alpha1.HazardTakesWholeDevice, Count: 2}}
	if diff := cmp.Diff(want, got.Hazards); diff != "" {
		t.Errorf("hazards (-want +got):\n%s", diff)
	}
}

func TestTransitionTimes(t *testing.T) {
	old := metav1.NewTime(now.Add(-time.Hour))
	profile := &v1alpha1.WorkloadProfile{}
	profile.Generation = 7
	profile.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Old", LastTransitionTime: old, ObservedGeneration: 3},
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Old", LastTransitionTime: old},
	}
	got := status.ForProfile(status.ProfileInputs{Profile: profile, Now: now})
	for _, c := range got.Conditions {
		want := metav1.NewTime(now.Truncate(time.Second))
		if c.Type == v1alpha1.ConditionAccepted {
			want = old
		}
		if !c.LastTransitionTime.Equal(&want) || c.ObservedGeneration != 7 {
			t.Errorf("%s: time %v, generation %d; want %v and 7", c.Type, c.LastTransitionTime, c.ObservedGeneration, want)
		}
	}
	if got.ObservedGeneration != 7 {
		t.Errorf("observedGeneration is %d, want 7", got.ObservedGeneration)
	}
}

func brief(conditions []metav1.Condition) []string {
	var list []string
	for _, c := range conditions {
		list = append(list, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return list
}

// checkMessages holds every condition that is not well to the rule that it says something.
func checkMessages(t *testing.T, conditions []metav1.Condition) {
	t.Helper()
	for _, c := range conditions {
		fromTest := c.Reason == v1alpha1.ReasonUnknownDeviceProperty
		if c.Status != metav1.ConditionTrue && c.Message == "" && !fromTest {
			t.Errorf("%s=%s/%s has no message", c.Type, c.Status, c.Reason)
		}
	}
}
