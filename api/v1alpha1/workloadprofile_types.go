package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
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
// +kubebuilder:validation:XValidation:rule="self.requests.map(r, has(r.firstAvailable) && size(r.firstAvailable) > 0 ? r.firstAvailable.map(s, has(s.count) ? s.count : 1).max() : (has(r.exactly) && has(r.exactly.count) ? r.exactly.count : 1)).sum() <= 32",fieldPath=".requests",message="the counts of all requests, the largest alternative of each, must add up to at most 32, the most devices that one claim can hold"
// +kubebuilder:validation:XValidation:rule="!has(self.constraints) || self.constraints.all(c, !has(c.requests) || c.requests.all(n, n.contains('/') ? self.requests.exists(r, has(r.firstAvailable) && n.startsWith(r.name + '/') && r.firstAvailable.exists(s, n.endsWith('/' + s.name))) : self.requests.exists(r, r.name == n)))",fieldPath=".constraints",message="constraints[].requests must name entries of requests, or request/alternative"
// +kubebuilder:validation:XValidation:rule="!has(self.config) || self.config.all(c, !has(c.requests) || c.requests.all(n, n.contains('/') ? self.requests.exists(r, has(r.firstAvailable) && n.startsWith(r.name + '/') && r.firstAvailable.exists(s, n.endsWith('/' + s.name))) : self.requests.exists(r, r.name == n)))",fieldPath=".config",message="config[].requests must name entries of requests, or request/alternative"
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

	// constraints relate the devices of requests to each other, as in a ResourceClaim; all must hold.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Constraints []DeviceConstraint `json:"constraints,omitempty"`

	// config is passed to the drivers of the allocated devices.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Config []ClaimConfig `json:"config,omitempty"`

	// suspend set to true stops every write and every deletion of child objects, while status goes on; what is published
	// stays. Deletion of the profile is not suspended. Unset means false.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
}

// TemplateUpdatePolicy says what happens to a published template when the profile changes.
// +kubebuilder:validation:Enum=Replace;OnDelete
type TemplateUpdatePolicy string

// Update policies.
const (
	// TemplateReplace deletes the published template and creates the new one under the same name.
	TemplateReplace TemplateUpdatePolicy = "Replace"
	// TemplateOnDelete leaves the published template until somebody deletes it.
	TemplateOnDelete TemplateUpdatePolicy = "OnDelete"
)

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
	// run; claims that exist keep what they have, and pods that are created in between wait for the new one. OnDelete
	// leaves the published template until somebody deletes it, and creates the new one then. Unset means Replace.
	// +optional
	UpdatePolicy TemplateUpdatePolicy `json:"updatePolicy,omitempty"`
}

// DeviceRequest asks for devices, as in a ResourceClaim.
// +kubebuilder:validation:ExactlyOneOf=exactly;firstAvailable
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

	// firstAvailable asks for devices of the first of several sources that can be had. The order is a preference on each
	// node; between nodes the scheduler weighs it against other things, so that a later alternative may win although an
	// earlier one is free elsewhere.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.name == b.name))",message="firstAvailable[].name must be unique"
	FirstAvailable []AlternativeRequest `json:"firstAvailable,omitempty"`
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
// +kubebuilder:validation:ExactlyOneOf=poolName;deviceClassName
// +kubebuilder:validation:XValidation:rule="has(self.deviceClassName) && has(self.devices) ? !has(self.devices.models) && !has(self.devices.architectures) && !has(self.devices.partitionProfiles) && !has(self.devices.memory) && !has(self.devices.cudaComputeCapability) && !has(self.devices.gpuDriverVersion) && !has(self.devices.sharing) && !has(self.devices.attributes) && !has(self.devices.capacity) : true",fieldPath=".devices",message="devices must have only selectors when deviceClassName is set, since a class names no driver whose properties could be translated"
// +kubebuilder:validation:XValidation:rule="has(self.allocationMode) && self.allocationMode == 'All' ? !has(self.count) : true",message="count must not be set when allocationMode is All"
type DeviceSource struct {
	// poolName is the GpuPool to take from. A pool that does not exist yet is waited for, and reported as PoolNotFound.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a GpuPool"
	PoolName string `json:"poolName,omitempty"`

	// deviceClassName is a DeviceClass that no pool stands for, of network cards, say. It need not exist yet.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a DeviceClass"
	DeviceClassName string `json:"deviceClassName,omitempty"`

	// allocationMode is ExactCount, which takes count devices, or All, which takes every matching device of a node and
	// waits while any resource pool there is incomplete. Unset means ExactCount.
	// +optional
	AllocationMode AllocationMode `json:"allocationMode,omitempty"`

	// count is the number of devices; unset means 1. All devices of a claim are on one node.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	Count int32 `json:"count,omitempty"`

	// devices narrows the source by further properties; unset means any device of it. With deviceClassName it may hold
	// only selectors.
	// +optional
	Devices *DeviceSelector `json:"devices,omitempty"`

	// capacityRequests is how much of a shared device the claim takes. A capacity that is not listed is taken by the
	// driver's default, which for many drivers is all of it: see the hazard TakesWholeDevice. For a device that is not
	// shared it is a lower bound. Unset means that the driver's defaults are taken.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.name == b.name))",message="capacityRequests[].name must be unique"
	CapacityRequests []CapacityRequest `json:"capacityRequests,omitempty"`

	// tolerations are taints of devices that the request puts up with. Unset means none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Tolerations []DeviceToleration `json:"tolerations,omitempty"`
}

// ExactRequest asks for devices of one source.
// +kubebuilder:validation:MinProperties=1
type ExactRequest struct {
	DeviceSource `json:",inline"`

	// adminAccess set to true asks for access to devices that others may hold, for monitoring. It is published only in
	// namespaces that carry the label resource.kubernetes.io/admin-access: "true". Unset means false.
	// +optional
	AdminAccess *bool `json:"adminAccess,omitempty"`
}

// AlternativeRequest is one of several sources of a request.
type AlternativeRequest struct {
	// name of the alternative; with the request it is request/name in constraints, config and allocation results.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS label of at most 63 characters"
	Name string `json:"name,omitempty"`

	DeviceSource `json:",inline"`
}

// CapacityRequest is an amount of one capacity of a shared device.
type CapacityRequest struct {
	// name of the capacity, literally as the driver publishes it: memory and hami-core-gpu.project-hami.io/memory are two
	// names here, unlike in selectors (resource.k8s.io/v1 CapacityRequirements).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?[A-Za-z_][A-Za-z0-9_]{0,31}$') && self.indexOf('/') <= 63",message="must be a capacity name such as memory, or domain/name such as dra.cpu/cpu"
	Name string `json:"name,omitempty"`

	// amount that the claim takes, for example 10Gi or 2. The driver may round it up.
	// +required
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^[0-9]+([.][0-9]+)?([numkMGTPE]|[KMGTPE]i)?$')",message="must be a quantity of 0 or more without an exponent, for example 10Gi or 2"
	Amount *resource.Quantity `json:"amount,omitempty"`
}

// TolerationOperator relates the key and value of a toleration to a taint.
// +kubebuilder:validation:Enum=Exists;Equal
type TolerationOperator string

// DeviceTaintEffect is what a taint of a device does.
// +kubebuilder:validation:Enum=NoSchedule;NoExecute
type DeviceTaintEffect string

// DeviceToleration puts up with a taint of a device, as in resource.k8s.io/v1. Its effect must be said: eviction
// ignores a toleration without one, so that a pod would be scheduled and then evicted.
// +kubebuilder:validation:XValidation:rule="self.operator == 'Exists' ? !has(self.value) : has(self.key)",message="value must not be set with operator Exists, and key must be set with operator Equal"
type DeviceToleration struct {
	// key of the taint; unset means all keys.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]+((-+|[.])[a-z0-9]+)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="must be a label key, for example gpu.nvidia.com/xid"
	Key string `json:"key,omitempty"`

	// operator relates key and value to the taint: Exists is any value, Equal the given one.
	// +required
	Operator TolerationOperator `json:"operator,omitempty"`

	// value of the taint, with operator Equal; unset means the empty value.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="must be a label value"
	Value *string `json:"value,omitempty"`

	// effect of the taint. To put up with a taint in full, list both effects.
	// +required
	Effect DeviceTaintEffect `json:"effect,omitempty"`

	// tolerationSeconds bounds for how many seconds a NoExecute taint is put up with; unset means for ever.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=315360000
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// DeviceConstraint relates the devices of requests to each other, as in resource.k8s.io/v1.
// +kubebuilder:validation:ExactlyOneOf=matchAttribute;distinctAttribute
type DeviceConstraint struct {
	// requests are names of requests, or request/alternative; unset means all requests.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=127
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(/[a-z0-9]([-a-z0-9]*[a-z0-9])?)?$')",message="must be the name of a request, or request/alternative"
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a == b))",message="constraints[].requests must be unique"
	Requests []string `json:"requests,omitempty"`

	// matchAttribute is an attribute, as domain/name, that must have the same value on all devices of the requests. A
	// device that lacks it never fits.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=96
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/[A-Za-z_][A-Za-z0-9_]{0,31}$') && self.indexOf('/') <= 63",message="must be domain/name, for example resource.kubernetes.io/pcieRoot"
	MatchAttribute string `json:"matchAttribute,omitempty"`

	// distinctAttribute is an attribute, as domain/name, that must have a different value on each device of the requests.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=96
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/[A-Za-z_][A-Za-z0-9_]{0,31}$') && self.indexOf('/') <= 63",message="must be domain/name, for example resource.kubernetes.io/pcieRoot"
	DistinctAttribute string `json:"distinctAttribute,omitempty"`
}

// ClaimConfig is configuration for drivers.
// +kubebuilder:validation:ExactlyOneOf=opaque
type ClaimConfig struct {
	// requests are names of requests, or request/alternative; unset means all requests. A request with firstAvailable
	// stands for all its alternatives: it is rendered as request/alternative, since drivers look for that name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=127
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(/[a-z0-9]([-a-z0-9]*[a-z0-9])?)?$')",message="must be the name of a request, or request/alternative"
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a == b))",message="config[].requests must be unique"
	Requests []string `json:"requests,omitempty"`

	// opaque is configuration for one driver.
	// +optional
	Opaque *OpaqueDeviceConfig `json:"opaque,omitempty"`
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

	// hazards are states that do what the spec says and probably not what is meant: TakesWholeDevice counts requests that
	// name no amount of a capacity of which the driver's default takes all, so that nobody shares the device.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Hazards []ReasonCount `json:"hazards,omitempty"`
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
