package inventory

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Makers of objects for tests. What they make is the plainest valid object of its kind; changes make it something else.

const (
	testDriver  = "gpu.example.com"
	testClass   = "whole.gpu.example.com"
	testProfile = "gpupool.dev/profile"
)

func build[T any](object *T, changes []func(*T)) *T {
	for _, change := range changes {
		change(object)
	}
	return object
}

// aNode is Ready.
func aNode(name string, changes ...func(*corev1.Node)) *Node {
	return FromNode(apiNode(name, changes...))
}

func apiNode(name string, changes ...func(*corev1.Node)) *corev1.Node {
	return build(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name)},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}, changes)
}

func inRack(rack string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels = map[string]string{"rack": rack} }
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

// aSlice is the only slice of a resource pool of its name, on a node of its name.
func aSlice(name string, changes ...func(*resourcev1.ResourceSlice)) *Slice {
	return FromSlice(apiSlice(name, changes...))
}

func apiSlice(name string, changes ...func(*resourcev1.ResourceSlice)) *resourcev1.ResourceSlice {
	return build(&resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("slice-" + name)},
		Spec: resourcev1.ResourceSliceSpec{
			Driver:   testDriver,
			Pool:     resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1},
			NodeName: &name,
		},
	}, changes)
}

func devices(devices ...resourcev1.Device) func(*resourcev1.ResourceSlice) {
	return func(s *resourcev1.ResourceSlice) { s.Spec.Devices = devices }
}

// pool makes a slice one of count slices of a generation of a resource pool.
func pool(name string, generation, count int64) func(*resourcev1.ResourceSlice) {
	return func(s *resourcev1.ResourceSlice) {
		s.Spec.Pool = resourcev1.ResourcePool{Name: name, Generation: generation, ResourceSliceCount: count}
	}
}

func onNode(name string) func(*resourcev1.ResourceSlice) {
	return func(s *resourcev1.ResourceSlice) { s.Spec.NodeName = &name }
}

func onAllNodes(s *resourcev1.ResourceSlice) {
	s.Spec.NodeName, s.Spec.AllNodes = nil, new(true)
}

func onNodesLabelled(key, value string) func(*resourcev1.ResourceSlice) {
	return func(s *resourcev1.ResourceSlice) {
		s.Spec.NodeName, s.Spec.NodeSelector = nil, nodeSelector(key, value)
	}
}

func perDevice(s *resourcev1.ResourceSlice) {
	s.Spec.NodeName, s.Spec.PerDeviceNodeSelection = nil, new(true)
}

func inAnUnknownWay(s *resourcev1.ResourceSlice) { s.Spec.NodeName = nil }

func nodeSelector(key, value string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: labelTerms(key, value)}
}

func labelTerms(key, value string) []corev1.NodeSelectorTerm {
	return []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
		Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
	}}}}
}

// counterSets gives a slice counter sets that hold so much of the counter "memory".
func counterSets(memory map[string]string) func(*resourcev1.ResourceSlice) {
	return func(s *resourcev1.ResourceSlice) {
		for name, amount := range memory {
			s.Spec.SharedCounters = append(s.Spec.SharedCounters, resourcev1.CounterSet{
				Name: name, Counters: memoryCounter(amount),
			})
		}
	}
}

func memoryCounter(amount string) map[string]resourcev1.Counter {
	return map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(amount)}}
}

func aDevice(name string, changes ...func(*resourcev1.Device)) resourcev1.Device {
	return *build(&resourcev1.Device{Name: name}, changes)
}

func attr(name, value string) func(*resourcev1.Device) {
	return func(d *resourcev1.Device) {
		if d.Attributes == nil {
			d.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
		}
		d.Attributes[resourcev1.QualifiedName(name)] = resourcev1.DeviceAttribute{StringValue: &value}
	}
}

func consumes(set, memory string) func(*resourcev1.Device) {
	return func(d *resourcev1.Device) {
		d.ConsumesCounters = append(d.ConsumesCounters, resourcev1.DeviceCounterConsumption{
			CounterSet: set, Counters: memoryCounter(memory),
		})
	}
}

func tainted(effect resourcev1.DeviceTaintEffect) func(*resourcev1.Device) {
	return func(d *resourcev1.Device) {
		d.Taints = append(d.Taints, resourcev1.DeviceTaint{Key: "example.com/broken", Effect: effect})
	}
}

func reachedFrom(node string) func(*resourcev1.Device) {
	return func(d *resourcev1.Device) { d.NodeName = &node }
}

func shareable(d *resourcev1.Device) { d.AllowMultipleAllocations = new(true) }

// aClaim requests one device of the test class, and is not allocated.
func aClaim(name string, changes ...func(*resourcev1.ResourceClaim)) *Claim {
	return FromClaim(build(&resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID("claim-" + name)},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{exactly("gpu", testClass)},
		}},
	}, changes), testProfile)
}

func exactly(name, class string) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class}}
}

func requests(requests ...resourcev1.DeviceRequest) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests = requests }
}

// holds allocates a device to the claim by its request gpu.
func holds(pool, device string, changes ...func(*resourcev1.DeviceRequestAllocationResult)) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) {
		if c.Status.Allocation == nil {
			c.Status.Allocation = &resourcev1.AllocationResult{}
		}
		results := &c.Status.Allocation.Devices.Results
		*results = append(*results, *build(&resourcev1.DeviceRequestAllocationResult{
			Request: "gpu", Driver: testDriver, Pool: pool, Device: device,
		}, changes))
	}
}

func byRequest(name string) func(*resourcev1.DeviceRequestAllocationResult) {
	return func(r *resourcev1.DeviceRequestAllocationResult) { r.Request = name }
}

func asAdmin(r *resourcev1.DeviceRequestAllocationResult) { r.AdminAccess = new(true) }

func asShare(id string) func(*resourcev1.DeviceRequestAllocationResult) {
	return func(r *resourcev1.DeviceRequestAllocationResult) { r.ShareID = new(types.UID(id)) }
}

func ownedByPod(uid string) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", UID: types.UID(uid)}}
	}
}

func ofProfile(name string) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) { c.Labels = map[string]string{testProfile: name} }
}

func claimDeleting(c *resourcev1.ResourceClaim) { c.DeletionTimestamp = &metav1.Time{} }

// aPod waits to be placed. Its UID is its name.
func aPod(name string, changes ...func(*corev1.Pod)) *Pod {
	pod, _ := FromPod(build(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID(name)},
	}, changes))
	return pod
}

func namesClaim(claim string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: claim, ResourceClaimName: &claim})
	}
}

// hasClaimMade has a claim made for the pod from a template.
func hasClaimMade(claim string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{
			Name: claim, ResourceClaimTemplateName: new("train"),
		})
		p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{
			Name: claim, ResourceClaimName: &claim,
		})
	}
}

func podDeleting(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }

func aRule(name string, effect resourcev1.DeviceTaintEffect, selector *resourcev1.DeviceTaintSelector) *TaintRule {
	return FromTaintRule(&resourcev1.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: selector,
			Taint:          resourcev1.DeviceTaint{Key: "example.com/maintenance", Effect: effect},
		},
	})
}
