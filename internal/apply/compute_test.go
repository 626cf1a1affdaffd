package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	resourceac "k8s.io/client-go/applyconfigurations/resource/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var owner = Owner{Kind: "WorkloadProfile", Name: "train", Labels: map[string]string{"managed-by": "us", "profile": "train"}}

func wantTemplate(change ...func(*resourceac.ExactDeviceRequestApplyConfiguration)) runtime.ApplyConfiguration {
	exactly := resourceac.ExactDeviceRequest().WithDeviceClassName("h100").
		WithAllocationMode(resourcev1.DeviceAllocationModeExactCount).WithCount(8).
		WithCapacity(resourceac.CapacityRequirements().WithRequests(map[resourcev1.QualifiedName]resource.Quantity{
			"memory": resource.MustParse("80Gi"),
		}))
	for _, c := range change {
		c(exactly)
	}
	opaque := resourceac.OpaqueDeviceConfiguration().WithDriver("d").WithParameters(runtime.RawExtension{Raw: []byte(`{"a":1,"b":[2]}`)})
	config := resourceac.DeviceClaimConfiguration()
	config.Opaque = opaque
	return resourceac.ResourceClaimTemplate("train", "").
		WithLabels(owner.Labels).
		WithOwnerReferences(metaac.OwnerReference().WithKind("WorkloadProfile").WithName("train").WithUID("u1").WithAPIVersion("v").WithController(true)).
		WithSpec(resourceac.ResourceClaimTemplateSpec().WithSpec(resourceac.ResourceClaimSpec().WithDevices(
			resourceac.DeviceClaim().WithRequests(resourceac.DeviceRequest().WithName("gpu").WithExactly(exactly)).WithConfig(config))))
}

// present is the template as an API server returns it, in other words of the same meaning.
func present(change ...func(*resourcev1.ResourceClaimTemplate)) *resourcev1.ResourceClaimTemplate {
	template := &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: "train", UID: "t1", ResourceVersion: "7",
			Labels:          map[string]string{"managed-by": "us", "profile": "train", "theirs": "stays"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v", Kind: "WorkloadProfile", Name: "train", UID: "u1", Controller: ptr.To(true)}},
		},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: "h100", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 8, Selectors: []resourcev1.DeviceSelector{},
				Capacity: &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{
					"memory": resource.MustParse("85899345920"),
				}},
			}}},
			Config: []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
				Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: "d", Parameters: runtime.RawExtension{Raw: []byte(`{ "b": [2.0], "a": 1 }`)}},
			}}},
		}}},
	}
	for _, c := range change {
		c(template)
	}
	return template
}

func TestCompute(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		want       runtime.ApplyConfiguration
		namespaces []string
		keepOld    bool
		have       []client.Object
		actions    map[string]string // by namespace/name: action, and what differs
	}{
		"nothing is there": {
			want: wantTemplate(), namespaces: []string{"a", "b"},
			actions: map[string]string{"a/train": "Create", "b/train": "Create"},
		},
		"the same meaning in other words is kept": {
			want: wantTemplate(), namespaces: []string{"a"}, have: []client.Object{present()},
			actions: map[string]string{"a/train": "Keep"},
		},
		"another count is replaced": {
			want:       wantTemplate(func(r *resourceac.ExactDeviceRequestApplyConfiguration) { r.WithCount(4) }),
			namespaces: []string{"a"}, have: []client.Object{present()},
			actions: map[string]string{"a/train": "Replace spec"},
		},
		"or left, until somebody deletes it": {
			want:       wantTemplate(func(r *resourceac.ExactDeviceRequestApplyConfiguration) { r.WithCount(4) }),
			namespaces: []string{"a"}, have: []client.Object{present()}, keepOld: true,
			actions: map[string]string{"a/train": "Leave spec"},
		},
		"another quantity is replaced": {
			want: wantTemplate(), namespaces: []string{"a"},
			have: []client.Object{present(func(r *resourcev1.ResourceClaimTemplate) {
				r.Spec.Spec.Devices.Requests[0].Exactly.Capacity.Requests["memory"] = resource.MustParse("80G")
			})},
			actions: map[string]string{"a/train": "Replace spec"},
		},
		"other parameters are replaced": {
			want: wantTemplate(), namespaces: []string{"a"},
			have: []client.Object{present(func(r *resourcev1.ResourceClaimTemplate) {
				r.Spec.Spec.Devices.Config[0].Opaque.Parameters.Raw = []byte(`{"a":1,"b":[3]}`)
			})},
			actions: map[string]string{"a/train": "Replace spec"},
		},
		"a missing owner is an update": {
			want: wantTemplate(), namespaces: []string{"a"},
			have:    []client.Object{present(func(r *resourcev1.ResourceClaimTemplate) { r.OwnerReferences[0].UID = "an earlier life" })},
			actions: map[string]string{"a/train": "Update ownerReferences"},
		},
		"somebody else's object is refused, equal as it may be": {
			want: wantTemplate(), namespaces: []string{"a"},
			have:    []client.Object{present(func(r *resourcev1.ResourceClaimTemplate) { delete(r.Labels, "managed-by") })},
			actions: map[string]string{"a/train": "Refuse"},
		},
		"an object on its way out is waited for": {
			want: wantTemplate(), namespaces: []string{"a"},
			have:    []client.Object{present(func(r *resourcev1.ResourceClaimTemplate) { r.DeletionTimestamp = &now })},
			actions: map[string]string{"a/train": "Wait"},
		},
		"what is ours and not wanted goes, what is not ours stays": {
			want: wantTemplate(), namespaces: []string{},
			have: []client.Object{
				present(),
				present(func(r *resourcev1.ResourceClaimTemplate) { r.Namespace = "b"; r.Labels = nil }),
				present(func(r *resourcev1.ResourceClaimTemplate) { r.Namespace = "c"; r.DeletionTimestamp = &now }),
				present(func(r *resourcev1.ResourceClaimTemplate) { r.Namespace = "d"; r.Name = "old name" }),
			},
			actions: map[string]string{"a/train": "Delete", "d/old name": "Delete"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			operations, err := Compute(owner, []Want{{Config: tc.want, Namespaced: true, Namespaces: tc.namespaces, KeepOld: tc.keepOld}}, tc.have)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, o := range operations {
				got[o.NamespacedName.String()] = string(o.Action)
				if o.Difference != "" {
					got[o.NamespacedName.String()] += " " + o.Difference
				}
			}
			if diff := cmp.Diff(tc.actions, got); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestComputeUpdatesMutableKinds(t *testing.T) {
	want := resourceac.DeviceClass("h100").WithLabels(owner.Labels).WithSpec(resourceac.DeviceClassSpec().WithSelectors(
		resourceac.DeviceSelector().WithCEL(resourceac.CELDeviceSelector().WithExpression("true"))))
	have := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "h100", Labels: owner.Labels}}
	operations, err := Compute(owner, []Want{{Config: want}}, []client.Object{have})
	if err != nil {
		t.Fatal(err)
	}
	if len(operations) != 1 || operations[0].Action != Update || operations[0].Difference != "spec" || operations[0].Namespace != "" {
		t.Errorf("got %+v, want one update of the spec", operations)
	}
}

func TestComputeRefusesUnknownKinds(t *testing.T) {
	if _, err := Compute(owner, []Want{{Config: resourceac.ResourceClaim("c", "a")}}, nil); err == nil {
		t.Error("a kind that nobody writes must be an error")
	}
}

func BenchmarkComputeUnchanged(b *testing.B) {
	var namespaces []string
	var have []client.Object
	for i := range 2000 {
		namespace := "ns-" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		namespaces = append(namespaces, namespace)
		have = append(have, present(func(r *resourcev1.ResourceClaimTemplate) { r.Namespace = namespace }))
	}
	wants := []Want{{Config: wantTemplate(), Namespaced: true, Namespaces: namespaces}}
	for b.Loop() {
		operations, err := Compute(owner, wants, have)
		if err != nil || operations[0].Action != Keep {
			b.Fatal(err, operations[0].Action)
		}
	}
}
