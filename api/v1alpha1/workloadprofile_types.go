package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadProfile is what a pod gets, published as a ResourceClaimTemplate in the selected namespaces. Pods name the
// template in spec.resourceClaims[].resourceClaimTemplateName.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=wprof,categories=gpupool-dev
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Template",type=string,JSONPath=`.status.templateName`
// +kubebuilder:printcolumn:name="Namespaces",type=integer,JSONPath=`.status.namespaces.published`
// +kubebuilder:printcolumn:name="Allocated",type=integer,JSONPath=`.status.claims.allocated`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.claims.pending`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata",message="metadata.name must be a DNS label of at most 63 characters"
type WorkloadProfile struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. The name must be a DNS label of at most 63 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what a pod gets and where the template is published.
	// +required
	Spec WorkloadProfileSpec `json:"spec,omitzero"`

	// status is where the template is published and how its claims fare.
	// +optional
	// +kubebuilder:default={conditions:{{type:"Ready",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	Status WorkloadProfileStatus `json:"status,omitzero"`
}

// WorkloadProfileList is a list of WorkloadProfiles.
// +kubebuilder:object:root=true
type WorkloadProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkloadProfile `json:"items"`
}

// WorkloadProfileSpec is what a pod gets and where.
// +kubebuilder:validation:XValidation:rule="has(self.template) && has(self.template.name) ? has(oldSelf.template) && has(oldSelf.template.name) && self.template.name == oldSelf.template.name : !has(oldSelf.template) || !has(oldSelf.template.name)",fieldPath=".template",message="template.name is immutable; it must keep its value, or stay unset"
// +kubebuilder:validation:XValidation:rule="self.requests.all(r, self.requests.exists_one(q, q.name == r.name))",fieldPath=".requests",message="requests[].name must be unique"
// +kubebuilder:validation:XValidation:rule="self.requests.map(r, has(r.exactly) && has(r.exactly.count) ? r.exactly.count : 1).sum() <= 32",fieldPath=".requests",message="the counts of all requests must add up to at most 32, the most devices that one claim can hold"
type WorkloadProfileSpec struct {
	// namespaces are where the template is published.
	// +required
	Namespaces NamespaceSelector `json:"namespaces,omitzero"`

	// template shapes the ResourceClaimTemplate; unset means a template of the profile's name.
	// +optional
	Template *ProfileTemplate `json:"template,omitempty"`

	// requests are the devices of one pod, as in a ResourceClaim and in the order given. The scheduler's allocator
	// searches in that order. One claim holds at most 32 devices over all requests.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Requests []DeviceRequest `json:"requests,omitempty"`

	// suspend set to true stops every write and every deletion of child objects, while status goes on; what is published
	// stays. Deletion of the profile is not suspended. Unset means false.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
}

// TemplateUpdatePolicy says what happens to a published template when the profile changes.
// +kubebuilder:validation:Enum=Replace
type TemplateUpdatePolicy string

// TemplateReplace deletes the published template and creates the new one under the same name.
const TemplateReplace TemplateUpdatePolicy = "Replace"

// ProfileTemplate shapes the ResourceClaimTemplate.
// +kubebuilder:validation:MinProperties=1
type ProfileTemplate struct {
	// name of the template in each namespace; unset means the profile's name. It is immutable, set or unset: workloads
	// name it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS label of at most 63 characters"
	Name string `json:"name,omitempty"`

	// updatePolicy says what happens when the profile changes, since Kubernetes makes the spec of a template immutable.
	// Replace deletes the template and creates it anew at once, after the API server has accepted the new one in a dry
	// run; claims that exist keep what they have, and pods that are created in between wait for the new one. Unset means
	// Replace.
	// +optional
	UpdatePolicy TemplateUpdatePolicy `json:"updatePolicy,omitempty"`
}

// DeviceRequest asks for devices, as in a ResourceClaim.
// +kubebuilder:validation:ExactlyOneOf=exactly
type DeviceRequest struct {
	// name is what containers refer to in resources.claims[].request. It is part of the contract with pods.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS label of at most 63 characters"
	Name string `json:"name,omitempty"`

	// exactly asks for devices of one source.
	// +optional
	Exactly *ExactRequest `json:"exactly,omitempty"`
}

// AllocationMode is how many devices a request takes, as in a ResourceClaim.
// +kubebuilder:validation:Enum=ExactCount;All
type AllocationMode string

// Allocation modes.
const (
	// AllocationExactCount takes count devices.
	AllocationExactCount AllocationMode = "ExactCount"
	// AllocationAll takes all matching devices of a node.
	AllocationAll AllocationMode = "All"
)

// DeviceSource is what a request takes, and from where.
// +kubebuilder:validation:ExactlyOneOf=poolName
// +kubebuilder:validation:XValidation:rule="has(self.allocationMode) && self.allocationMode == 'All' ? !has(self.count) : true",message="count must not be set when allocationMode is All"
type DeviceSource struct {
	// poolName is the GpuPool to take from. A pool that does not exist yet is waited for, and reported as PoolNotFound.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a GpuPool"
	PoolName string `json:"poolName,omitempty"`

	// allocationMode is ExactCount, which takes count devices, or All, which takes every matching device of a node and
	// waits while any resource pool there is incomplete. Unset means ExactCount.
	// +optional
	AllocationMode AllocationMode `json:"allocationMode,omitempty"`

	// count is the number of devices; unset means 1. All devices of a claim are on one node.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	Count int32 `json:"count,omitempty"`

	// devices narrows the source by further properties; unset means any device of it.
	// +optional
	Devices *DeviceSelector `json:"devices,omitempty"`
}

// ExactRequest asks for devices of one source.
// +kubebuilder:validation:MinProperties=1
type ExactRequest struct {
	DeviceSource `json:",inline"`
}

// WorkloadProfileStatus is where the template is published and how its claims fare.
type WorkloadProfileStatus struct {
	// conditions are Accepted, TemplatesPublished and Ready, and Reconciling or Stalled while true.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the newest metadata.generation that the operator has judged.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// templateName is the name of the ResourceClaimTemplate that pods name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	TemplateName string `json:"templateName,omitempty"`

	// namespaces counts the namespaces that the profile selects.
	// +optional
	Namespaces *NamespaceCounts `json:"namespaces,omitempty"`

	// claims counts the ResourceClaims that were made from the profile's template, told by their label
	// gpupool.dev/profile.
	// +optional
	Claims *ClaimCounts `json:"claims,omitempty"`
}

// NamespaceCounts counts namespaces.
type NamespaceCounts struct {
	// selected is how many namespaces the profile selects, listed ones that do not exist included and terminating ones
	// not.
	// +required
	// +kubebuilder:validation:Minimum=0
	Selected *int32 `json:"selected,omitempty"`

	// published is how many of them have the profile's current template.
	// +required
	// +kubebuilder:validation:Minimum=0
	Published *int32 `json:"published,omitempty"`

	// failures says why the others have not, the largest count first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Failures []ReasonCount `json:"failures,omitempty"`
}

// ReasonCount is a number of objects for one reason.
type ReasonCount struct {
	// reason is a documented reason of the condition or count that it explains.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason,omitempty"`

	// count is how many objects have the reason.
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count,omitempty"`
}
