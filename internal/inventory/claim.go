package inventory

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Claim is a ResourceClaim.
type Claim struct {
	Namespace Symbol
	Name      string
	UID       UID
	// OwnerPod is the Pod that the claim was made for; zero for a claim that somebody made by hand.
	OwnerPod UID
	// Profile is the value of the label that attributes a claim to a profile. Tenants can write it, so that it never
	// decides how many devices are counted.
	Profile Symbol
	// Deleting is whether deletion was requested. An allocation holds its devices until it is cleared.
	Deleting bool
	// ForExtendedResource is whether the scheduler made the claim for a pod that asked an extended resource.
	ForExtendedResource bool
	Requests            []Request
	// Allocated is whether the claim has an allocation; Results are its devices.
	Allocated bool
	Results   []Result
	// ReservedFor are the pods that the claim is reserved for.
	ReservedFor []UID
	// ReservedForOthers is for how many objects that are no pods the claim is reserved.
	ReservedForOthers int
}

// Request is a request of a claim, with the server's defaults filled in.
type Request struct {
	Name Symbol
	// Class is the DeviceClass; empty in a request that has alternatives.
	Class Symbol
	// Mode is ExactCount, All or a mode of a later Kubernetes; empty in a request that has alternatives.
	Mode Symbol
	// Count is how many devices an ExactCount asks. The API does not bound it.
	Count       int64
	AdminAccess bool
	// Alternatives are requests of which the first that can be met is met (firstAvailable).
	Alternatives []Request
}

// Result is a device that was allocated to a claim.
type Result struct {
	// Request is the name of the request, or request/alternative.
	Request Symbol
	// Class is the DeviceClass that this request names; empty where the claim has no such request.
	Class                Symbol
	Driver, Pool, Device Symbol
	// AdminAccess results take nothing: others may hold the device at the same time.
	AdminAccess bool
	// Share is set where the claim holds a share of a device.
	Share *Share
}

// Share is a share of a device that several claims can hold.
type Share struct {
	ID UID
	// Consumed is what the share takes of the device's capacity, sorted by name.
	Consumed []Capacity
}

func (*Claim) kind() Kind { return Claims }

// Key is the claim's namespace and name.
func (c *Claim) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace.String(), Name: c.Name}
}

// FromClaim makes the compact form of a ResourceClaim. profileLabel is the label whose value becomes Claim.Profile; no
// other label is kept.
func FromClaim(claim *resourcev1.ResourceClaim, profileLabel string) *Claim {
	compact := &Claim{
		Namespace:           Intern(claim.Namespace),
		Name:                claim.Name,
		UID:                 packUID(claim.UID),
		OwnerPod:            owner(claim.OwnerReferences, corev1.SchemeGroupVersion.String(), "Pod"),
		Profile:             Intern(claim.Labels[profileLabel]),
		Deleting:            claim.DeletionTimestamp != nil,
		ForExtendedResource: claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true",
		Allocated:           claim.Status.Allocation != nil,
	}
	if requests := claim.Spec.Devices.Requests; len(requests) > 0 {
		compact.Requests = make([]Request, len(requests))
		for i := range requests {
			compact.Requests[i] = newRequest(&requests[i])
		}
	}
	if allocation := claim.Status.Allocation; allocation != nil && len(allocation.Devices.Results) > 0 {
		compact.Results = make([]Result, len(allocation.Devices.Results))
		for i := range allocation.Devices.Results {
			compact.Results[i] = compact.newResult(&allocation.Devices.Results[i])
		}
	}
	for i := range claim.Status.ReservedFor {
		if consumer := &claim.Status.ReservedFor[i]; consumer.APIGroup == "" && consumer.Resource == "pods" {
			compact.ReservedFor = append(compact.ReservedFor, packUID(consumer.UID))
		} else {
			compact.ReservedForOthers++
		}
	}
	return compact
}

func newRequest(r *resourcev1.DeviceRequest) Request {
	if exactly := r.Exactly; exactly != nil {
		request := newSource(r.Name, exactly.DeviceClassName, exactly.AllocationMode, exactly.Count)
		request.AdminAccess = valueOf(exactly.AdminAccess)
		return request
	}
	request := Request{Name: Intern(r.Name)}
	for i := range r.FirstAvailable {
		sub := &r.FirstAvailable[i]
		request.Alternatives = append(request.Alternatives,
			newSource(sub.Name, sub.DeviceClassName, sub.AllocationMode, sub.Count))
	}
	return request
}

// newSource fills in the defaults of the API server: captured and hand-written claims may lack them.
func newSource(name, class string, mode resourcev1.DeviceAllocationMode, count int64) Request {
	if mode == "" {
		mode = resourcev1.DeviceAllocationModeExactCount
	}
	if mode == resourcev1.DeviceAllocationModeExactCount && count == 0 {
		count = 1
	}
	return Request{Name: Intern(name), Class: Intern(class), Mode: Intern(string(mode)), Count: count}
}

func (c *Claim) newResult(r *resourcev1.DeviceRequestAllocationResult) Result {
	result := Result{
		Request:     Intern(r.Request),
		Class:       c.class(r.Request),
		Driver:      Intern(r.Driver),
		Pool:        Intern(r.Pool),
		Device:      Intern(r.Device),
		AdminAccess: valueOf(r.AdminAccess),
	}
	if r.ShareID != nil {
		result.Share = &Share{ID: packUID(*r.ShareID)}
		for _, name := range sortedKeys(r.ConsumedCapacity) {
			result.Share.Consumed = append(result.Share.Consumed,
				newCapacity(name, newAmount(r.ConsumedCapacity[name])))
		}
	}
	return result
}

// class is the DeviceClass that a request names. The request is referred to as in a result: request, or
// request/alternative.
func (c *Claim) class(reference string) Symbol {
	name, alternative, _ := strings.Cut(reference, "/")
	for i := range c.Requests {
		request := &c.Requests[i]
		if request.Name.String() != name {
			continue
		}
		for j := range request.Alternatives {
			if request.Alternatives[j].Name.String() == alternative {
				return request.Alternatives[j].Class
			}
		}
		return request.Class
	}
	return Symbol{}
}

// classes calls yield with each DeviceClass that a request or an alternative names, until it returns false.
func (c *Claim) classes(yield func(Symbol) bool) {
	for i := range c.Requests {
		request := &c.Requests[i]
		if len(request.Alternatives) == 0 && !yield(request.Class) {
			return
		}
		for j := range request.Alternatives {
			if !yield(request.Alternatives[j].Class) {
				return
			}
		}
	}
}

// names says whether a request or an alternative of the claim names a class that is included.
func (c *Claim) names(includes func(Symbol) bool) bool {
	for class := range c.classes {
		if includes(class) {
			return true
		}
	}
	return false
}
