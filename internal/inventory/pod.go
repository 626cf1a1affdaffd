package inventory

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// Pod is a Pod that the scheduler has not placed yet.
type Pod struct {
	Namespace Symbol
	Name      string
	UID       UID
	// Claims are the claims that the pod refers to, made yet or not.
	Claims []PodClaim
	// ExtendedResources are the extended resources that the pod asks, by name.
	ExtendedResources []ExtendedResource
	// Gated is whether scheduling gates hold the pod back.
	Gated bool
	// Deleting is whether deletion was requested.
	Deleting bool
}

// PodClaim is a claim that a pod refers to.
type PodClaim struct {
	// Claim is the claim's name, in the namespace of the pod. It is empty while a claim from a template was not made yet.
	Claim string
	// Template is the template that the claim is made from; empty for a claim that the pod names, and for the claim that
	// the scheduler makes for extended resources.
	Template Symbol
	// Generated claims are made for the pod, which owns them.
	Generated bool
}

// ExtendedResource is how much of an extended resource a pod asks.
type ExtendedResource struct {
	Name  Symbol
	Count int64
}

func (*Pod) kind() Kind { return Pods }

// Key is the pod's namespace and name.
func (p *Pod) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace.String(), Name: p.Name}
}

// FromPod makes the compact form of a Pod. It returns false for a pod that is placed or has ended: those wait for
// nothing, and the inventory holds none of them.
func FromPod(pod *corev1.Pod) (*Pod, bool) {
	if pod.Spec.NodeName != "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil, false
	}
	return &Pod{
		Namespace:         Intern(pod.Namespace),
		Name:              pod.Name,
		UID:               packUID(pod.UID),
		Claims:            newPodClaims(pod),
		ExtendedResources: newExtendedResources(pod),
		Gated:             len(pod.Spec.SchedulingGates) > 0,
		Deleting:          pod.DeletionTimestamp != nil,
	}, true
}

func newPodClaims(pod *corev1.Pod) []PodClaim {
	var claims []PodClaim
	for i := range pod.Spec.ResourceClaims {
		reference := &pod.Spec.ResourceClaims[i]
		// An error says that the claim was not made yet, or that the reference is of a kind that only a later
		// Kubernetes knows. In both cases there is no claim to name.
		name, generated, _ := resourceclaim.Name(pod, reference)
		claims = append(claims, PodClaim{
			Claim:     valueOf(name),
			Template:  Intern(valueOf(reference.ResourceClaimTemplateName)),
			Generated: generated || reference.ResourceClaimTemplateName != nil,
		})
	}
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil && status.ResourceClaimName != "" {
		claims = append(claims, PodClaim{Claim: status.ResourceClaimName, Generated: true})
	}
	return claims
}

// newExtendedResources counts as the scheduler does: init containers and sidecars included, each resource apart.
func newExtendedResources(pod *corev1.Pod) []ExtendedResource {
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	var extended []ExtendedResource
	for _, name := range sortedKeys(requests) {
		if count := requests[name]; mayBeDevices(name) && count.Sign() > 0 {
			extended = append(extended, ExtendedResource{Name: Intern(string(name)), Count: count.Value()})
		}
	}
	return extended
}

// mayBeDevices says whether a resource may be served by a DeviceClass: an extended resource has a domain other than
// kubernetes.io, and each class has an implicit one under a domain of its own (resource.k8s.io/v1 DeviceClass).
func mayBeDevices(name corev1.ResourceName) bool {
	if strings.HasPrefix(string(name), resourcev1.ResourceDeviceClassPrefix) {
		return true
	}
	return strings.Contains(string(name), "/") &&
		!strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
}
