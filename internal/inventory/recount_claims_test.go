package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

func TestAllocated(t *testing.T) {
	a := []*Node{aNode("a")}
	two := []*Slice{aSlice("a", devices(aDevice("gpu-0"), aDevice("gpu-1")))}
	other := requests(exactly("gpu", "other.example.com"))
	one := func(elsewhere int) *DeviceCounts {
		return &DeviceCounts{Total: 2, Allocated: 1, AllocatedElsewhere: elsewhere, Available: 1}
	}
	check(t, map[string]rule{
		"a claim of another class holds the device elsewhere": {
			world: world{nodes: a, slices: two, claims: []*Claim{aClaim("c", other, holds("a", "gpu-0"))}},
			want:  PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: one(1)},
		},
		"a result whose request is unknown holds the device elsewhere": {
			world: world{nodes: a, slices: two, claims: []*Claim{aClaim("c", holds("a", "gpu-0", byRequest("nic")))}},
			want:  PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: one(1)},
		},
		"a device that two claims share is not elsewhere if one of them names the class": {
			world: world{nodes: a, slices: two, claims: []*Claim{
				aClaim("c", other, holds("a", "gpu-0", asShare("1"))), aClaim("d", holds("a", "gpu-0", asShare("2"))),
			}},
			want: PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: one(0), Claims: ClaimCounts{Allocated: 1}},
		},
		"a claim of several devices is one claim": {
			world: world{nodes: a, slices: two, claims: []*Claim{aClaim("c", holds("a", "gpu-0"), holds("a", "gpu-1"))}},
			want: PoolCounts{
				Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 2, Allocated: 2},
				Claims: ClaimCounts{Allocated: 1},
			},
		},
		"a claim with a device and access for administration takes": {
			world: world{nodes: a, slices: two, claims: []*Claim{aClaim("c", holds("a", "gpu-0"), holds("a", "gpu-1", asAdmin))}},
			want:  PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: one(0), Claims: ClaimCounts{Allocated: 1}},
		},
		"an orphan is one device however many hold it, of the class only": {
			world: world{nodes: a, slices: two, claims: []*Claim{
				aClaim("c", holds("a", "gpu-7", asShare("1"))), aClaim("d", holds("a", "gpu-7", asShare("2"))),
				aClaim("e", holds("a", "gpu-8", asAdmin)), aClaim("f", other, holds("a", "gpu-9")),
				aClaim("g", holds("gone", "gpu-0")),
			}},
			want: PoolCounts{
				Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 2, Available: 2}, Orphaned: 2,
				Claims: ClaimCounts{Allocated: 3, AdminAccess: 1},
			},
		},
		"a device of an older generation only is an orphan": {
			world: world{
				nodes: a, slices: append([]*Slice{aSlice("old", pool("a", 0, 1), onNode("a"), devices(aDevice("gpu-7")))}, two...),
				claims: []*Claim{aClaim("c", holds("a", "gpu-7"))},
			},
			want: PoolCounts{
				Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 2, Available: 2}, Orphaned: 1,
				Claims: ClaimCounts{Allocated: 1},
			},
		},
		"what an incomplete pool does not show may still come": {
			world: world{
				nodes: a, slices: []*Slice{aSlice("a", pool("a", 1, 2), devices(aDevice("gpu-0")))},
				claims: []*Claim{aClaim("c", holds("a", "gpu-0")), aClaim("d", holds("a", "gpu-7"))},
			},
			want: PoolCounts{
				Nodes: NodeCounts{Selected: 1, Publishing: 1},
				ResourcePools: ResourcePoolCounts{
					Total: 1, Incomplete: 1, IncompleteReasons: map[IncompleteReason]int{FewerSlices: 1},
				},
				Devices: &DeviceCounts{},
				Claims:  ClaimCounts{Allocated: 2},
			},
		},
	})
}

func TestClaims(t *testing.T) {
	firstAvailable := requests(resourcev1.DeviceRequest{Name: "gpu", FirstAvailable: []resourcev1.DeviceSubRequest{
		{Name: "big", DeviceClassName: "other.example.com"}, {Name: "small", DeviceClassName: testClass},
	}})
	counts := func(claims ClaimCounts) PoolCounts { return PoolCounts{Devices: &DeviceCounts{}, Claims: claims} }
	pending, none := counts(ClaimCounts{Pending: 1}), counts(ClaimCounts{})
	check(t, map[string]rule{
		"a claim that a pod names is pending": {
			world: world{claims: []*Claim{aClaim("c")}, pods: []*Pod{aPod("p", namesClaim("c"))}}, want: pending,
		},
		"two pods wait for one claim": {
			world: world{claims: []*Claim{aClaim("c")}, pods: []*Pod{aPod("p", namesClaim("c")), aPod("q", namesClaim("c"))}}, want: pending,
		},
		"a claim that was made for a pod is pending": {
			world: world{claims: []*Claim{aClaim("c", ownedByPod("p"))}, pods: []*Pod{aPod("p", hasClaimMade("c"))}}, want: pending,
		},
		"a claim that was made for an earlier pod is not": {
			world: world{claims: []*Claim{aClaim("c", ownedByPod("earlier"))}, pods: []*Pod{aPod("p", hasClaimMade("c"))}}, want: none,
		},
		"the pod must be in the claim's namespace": {
			world: world{
				claims: []*Claim{aClaim("c")},
				pods:   []*Pod{aPod("p", namesClaim("c"), func(p *corev1.Pod) { p.Namespace = "team-b" })},
			},
			want: none,
		},
		"a claim without a pod is no demand": {world: world{claims: []*Claim{aClaim("c")}}, want: none},
		"a pod that is being deleted waits for nothing": {
			world: world{claims: []*Claim{aClaim("c")}, pods: []*Pod{aPod("p", namesClaim("c"), podDeleting)}}, want: none,
		},
		"a claim that is being deleted is not pending": {
			world: world{claims: []*Claim{aClaim("c", claimDeleting)}, pods: []*Pod{aPod("p", namesClaim("c"))}}, want: none,
		},
		"a gated pod waits": {
			world: world{claims: []*Claim{aClaim("c")}, pods: []*Pod{aPod("p", namesClaim("c"), func(p *corev1.Pod) {
				p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}}
			})}},
			want: pending,
		},
		"every alternative is named while none is chosen": {
			world: world{claims: []*Claim{aClaim("c", firstAvailable)}, pods: []*Pod{aPod("p", namesClaim("c"))}}, want: pending,
		},
		"the chosen alternative is named": {
			world: world{claims: []*Claim{aClaim("c", firstAvailable, holds("a", "gpu-0", byRequest("gpu/small")))}},
			want:  PoolCounts{Devices: &DeviceCounts{}, Orphaned: 1, Claims: ClaimCounts{Allocated: 1}},
		},
		"the others are not any more, even if a pod still waits": {
			world: world{
				claims: []*Claim{aClaim("c", firstAvailable, holds("a", "gpu-0", byRequest("gpu/big")))},
				pods:   []*Pod{aPod("p", namesClaim("c"))},
			},
			want: none,
		},
		"a claim for another class is another's": {
			world: world{
				claims: []*Claim{aClaim("c", requests(exactly("gpu", "other.example.com")))}, pods: []*Pod{aPod("p", namesClaim("c"))},
			},
			want: none,
		},
	})
}

func TestProfileClaims(t *testing.T) {
	w := world{
		claims: []*Claim{
			aClaim("waits", ofProfile("train")),
			aClaim("waits-for-nobody", ofProfile("train")),
			aClaim("holds", ofProfile("train"), requests(exactly("gpu", "other.example.com")), holds("a", "gpu-0")),
			aClaim("deleting", ofProfile("train"), claimDeleting, holds("a", "gpu-1")),
			aClaim("observes", ofProfile("train"), holds("a", "gpu-1", asAdmin)),
			aClaim("of-another", ofProfile("infer"), holds("a", "gpu-2")),
			aClaim("of-none", holds("a", "gpu-3")),
		},
		pods: []*Pod{aPod("p", namesClaim("waits"), namesClaim("of-another"))},
	}
	for name, test := range map[string]struct {
		profile string
		want    ClaimCounts
	}{
		"claims of every class count":          {"train", ClaimCounts{Allocated: 2, AdminAccess: 1, Pending: 1}},
		"a profile without claims has none":    {"serve", ClaimCounts{}},
		"claims of other profiles are others'": {"infer", ClaimCounts{Allocated: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, recountProfile(w, test.profile)); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}
