package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GpuPool is a set of devices of one DRA driver, chosen by their properties and published as a DeviceClass. Its status
// counts the devices as the scheduler does.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=gpool,categories=gpupool-dev
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.spec.driver.name`
// +kubebuilder:printcolumn:name="Total",type=integer,JSONPath=`.status.devices.total`
// +kubebuilder:printcolumn:name="Allocated",type=integer,JSONPath=`.status.devices.allocated`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.devices.available`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.claims.pending`
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.status.deviceClassName`,priority=1
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes.selected`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,46}[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata",message="metadata.name must be a DNS label of at most 48 characters"
type GpuPool struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. The name must be a DNS label of at most 48 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the pool should be.
	// +required
	Spec GpuPoolSpec `json:"spec,omitzero"`

	// status is what the pool is, as the operator last saw it.
	// +optional
	// +kubebuilder:default={conditions:{{type:"Ready",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	Status GpuPoolStatus `json:"status,omitzero"`
}

// GpuPoolList is a list of GpuPools.
// +kubebuilder:object:root=true
type GpuPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GpuPool `json:"items"`
}

// GpuPoolSpec is what the pool should be.
// +kubebuilder:validation:XValidation:rule="has(self.deviceClass) && has(self.deviceClass.name) ? has(oldSelf.deviceClass) && has(oldSelf.deviceClass.name) && self.deviceClass.name == oldSelf.deviceClass.name : !has(oldSelf.deviceClass) || !has(oldSelf.deviceClass.name)",fieldPath=".deviceClass",message="deviceClass.name is immutable; it must keep its value, or stay unset"
type GpuPoolSpec struct {
	// driver is the DRA driver that publishes the devices.
	// +required
	Driver Driver `json:"driver,omitzero"`

	// nodes bounds which nodes the pool counts. It does not bound where a pod may get a device: a DeviceClass cannot
	// select nodes. Unset means all nodes.
	// +optional
	Nodes *NodeSelection `json:"nodes,omitempty"`

	// devices selects devices of the driver by their properties; unset means every whole device, and every device of a
	// driver that the operator's catalogue does not know.
	// +optional
	Devices *PoolDevices `json:"devices,omitempty"`

	// deviceClass shapes the DeviceClass that is written for the pool; unset means a class named <pool>.gpupool.dev.
	// +optional
	DeviceClass *PoolDeviceClass `json:"deviceClass,omitempty"`

	// suspend set to true stops every write and every deletion of child objects, while status goes on; what is published
	// stays. Deletion of the pool is not suspended. Unset means false.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
}

// Driver is a DRA driver.
type Driver struct {
	// name is the driver's name as in ResourceSlice spec.driver, for example gpu.nvidia.com. It is immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a DNS subdomain, for example gpu.nvidia.com"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="driver.name is immutable"
	Name string `json:"name,omitempty"`
}

// NodeSelection selects nodes.
// +kubebuilder:validation:MinProperties=1
type NodeSelection struct {
	// selectorTerms are node selector terms as in a pod's node affinity; a node is selected if any term matches it. Unset
	// means all nodes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	SelectorTerms []NodeSelectorTerm `json:"selectorTerms,omitempty"`

	// minReadyNodes is on how many selected nodes the driver must publish for DriverReady to be True; a node counts once
	// at least one ResourceSlice of the driver is reachable from it, complete or not. It creates no nodes. Unset means 1;
	// 0 suits pools that scale from zero.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	MinReadyNodes *int32 `json:"minReadyNodes,omitempty"`
}

// NodeSelectorTerm is a node selector term as in core/v1; all its requirements must hold.
// +kubebuilder:validation:AtLeastOneOf=matchExpressions;matchFields
type NodeSelectorTerm struct {
	// matchExpressions are requirements on the labels of a node.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []NodeSelectorRequirement `json:"matchExpressions,omitempty"`

	// matchFields are requirements on fields of a node; only metadata.name is supported, with In or NotIn and one value.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:items:XValidation:rule="self.key == 'metadata.name' && self.operator in ['In', 'NotIn'] && has(self.values) && size(self.values) == 1",message="must have key metadata.name, operator In or NotIn, and exactly one value"
	MatchFields []NodeSelectorRequirement `json:"matchFields,omitempty"`
}

// NodeOperator relates a label to values, as in core/v1 NodeSelectorOperator.
// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt
type NodeOperator string

// NodeSelectorRequirement is a requirement on a label or field of a node, as in core/v1.
// +kubebuilder:validation:XValidation:rule="self.operator in ['Exists', 'DoesNotExist'] ? !has(self.values) : has(self.values)",message="values must be set with In, NotIn, Gt and Lt, and must not be set with Exists and DoesNotExist"
// +kubebuilder:validation:XValidation:rule="self.operator in ['Gt', 'Lt'] ? has(self.values) && size(self.values) == 1 && self.values[0].matches('^-?[0-9]{1,18}$') : true",message="Gt and Lt must have exactly one value, a whole number"
type NodeSelectorRequirement struct {
	// key is the label, or the field in matchFields.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="must be a label key, for example node.kubernetes.io/instance-type"
	Key string `json:"key,omitempty"`

	// operator relates key and values; a node without the label matches NotIn and DoesNotExist only.
	// +required
	Operator NodeOperator `json:"operator,omitempty"`

	// values are what operator compares with; unset with Exists and DoesNotExist.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	Values []string `json:"values,omitempty"`
}

// DeviceType is what kind of thing a published device is. The operator's catalogue knows how a driver says it.
// +kubebuilder:validation:Enum=Whole;Partition;Passthrough;Any
type DeviceType string

// Types of devices.
const (
	// DeviceWhole is a whole card.
	DeviceWhole DeviceType = "Whole"
	// DevicePartition is a part of a card with hardware of its own, such as a MIG device.
	DevicePartition DeviceType = "Partition"
	// DevicePassthrough is a card handed to a virtual machine.
	DevicePassthrough DeviceType = "Passthrough"
	// DeviceAny is every device of the driver.
	DeviceAny DeviceType = "Any"
)

// PoolDevices selects the devices of a pool.
// +kubebuilder:validation:MinProperties=1
type PoolDevices struct {
	// type is what the devices are: Whole cards, Partition of a card (MIG), Passthrough to a virtual machine, or Any.
	// Unset means Whole, and Any for a driver that the operator's catalogue does not know.
	// +optional
	Type DeviceType `json:"type,omitempty"`

	DeviceSelector `json:",inline"`
}

// PoolDeviceClass shapes the DeviceClass of a pool.
// +kubebuilder:validation:MinProperties=1
type PoolDeviceClass struct {
	// name of the DeviceClass; unset means <pool>.gpupool.dev. It is immutable, set or unset: templates, quotas and
	// implicit extended resources are built on it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a DNS subdomain of at most 63 characters"
	Name string `json:"name,omitempty"`

	// extendedResourceName lets pods ask for the pool's devices by plain resource limits, as with a device plugin. Only
	// one DeviceClass of a cluster can have a name: the class that already holds it keeps it, and if none does the pool
	// first by name; the other's class is written without it. Every class can be asked for as
	// deviceclass.resource.kubernetes.io/<class> too, without setting anything. Unset means only that.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=244
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && !self.contains('kubernetes.io/') && !self.startsWith('requests.')",message="must be <domain>/<name> outside kubernetes.io, for example example.com/h100"
	ExtendedResourceName string `json:"extendedResourceName,omitempty"`

	// config is put into the DeviceClass and reaches the drivers of every claim of the class. A change affects only claims
	// that are allocated later.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Config []ClassConfig `json:"config,omitempty"`
}

// ClassConfig is configuration of a DeviceClass.
// +kubebuilder:validation:ExactlyOneOf=opaque
type ClassConfig struct {
	// opaque is configuration for one driver.
	// +optional
	Opaque *OpaqueDeviceConfig `json:"opaque,omitempty"`
}

// GpuPoolStatus is what the pool is. Counts are over complete resource pools, as the scheduler's; a field that is not
// known is unset, never zero.
type GpuPoolStatus struct {
	// conditions are Accepted, ClassPublished, DriverReady, InventoryComplete, DevicesFound and Ready, and Reconciling or
	// Stalled while true.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the newest metadata.generation that the operator has judged.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// deviceClassName is the name of the DeviceClass that is written for the pool.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	DeviceClassName string `json:"deviceClassName,omitempty"`

	// nodes counts the nodes that the pool selects; unset until the operator has read the cluster once.
	// +optional
	Nodes *PoolNodeCounts `json:"nodes,omitempty"`

	// resourcePools counts the driver's DRA resource pools that are reachable from the selected nodes.
	// +optional
	ResourcePools *ResourcePoolCounts `json:"resourcePools,omitempty"`

	// devices counts the pool's devices on the selected nodes. Unset while unknown, and unset when not all of the pool's
	// devices could be allocated at once on an idle fleet (overlapping partitions): then a sum of devices means nothing.
	// +optional
	Devices *DeviceCounts `json:"devices,omitempty"`

	// outOfScope is how many devices the DeviceClass matches on nodes that the pool does not select. Claims may get them
	// all the same: a DeviceClass cannot select nodes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	OutOfScope *int32 `json:"outOfScope,omitempty"`

	// models counts the devices by product name, the 16 most frequent ones; unset where devices is, and for a driver whose
	// product names the operator does not know.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Models []ModelCounts `json:"models,omitempty"`

	// excluded says which fields of spec.devices keep out how many of the driver's devices on the selected nodes, in the
	// order in which they are tested. A device counts for the first field that keeps it out.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Excluded []ExcludedDevices `json:"excluded,omitempty"`

	// claims counts ResourceClaims that request the pool's DeviceClass.
	// +optional
	Claims *ClaimCounts `json:"claims,omitempty"`
}

// PoolNodeCounts counts nodes.
type PoolNodeCounts struct {
	// selected is how many nodes the pool selects.
	// +required
	// +kubebuilder:validation:Minimum=0
	Selected *int32 `json:"selected,omitempty"`

	// publishing is how many selected nodes reach at least one ResourceSlice of the driver.
	// +required
	// +kubebuilder:validation:Minimum=0
	Publishing *int32 `json:"publishing,omitempty"`

	// withDevices is how many selected nodes reach at least one device of the pool.
	// +required
	// +kubebuilder:validation:Minimum=0
	WithDevices *int32 `json:"withDevices,omitempty"`
}

// ResourcePoolCounts counts DRA resource pools (driver and pool name).
type ResourcePoolCounts struct {
	// total is how many resource pools of the driver are reachable from the selected nodes.
	// +required
	// +kubebuilder:validation:Minimum=0
	Total *int32 `json:"total,omitempty"`

	// incomplete is how many of them are not complete or not valid; their devices are in no count.
	// +required
	// +kubebuilder:validation:Minimum=0
	Incomplete *int32 `json:"incomplete,omitempty"`
}

// DeviceCounts counts devices; total = allocated + available + unavailable.
type DeviceCounts struct {
	// total is how many devices the pool has.
	// +required
	// +kubebuilder:validation:Minimum=0
	Total *int32 `json:"total,omitempty"`

	// allocated is how many of them are named by an allocated ResourceClaim, by whichever class it asked. Access for
	// administration (adminAccess) does not count, and a shared device counts once.
	// +required
	// +kubebuilder:validation:Minimum=0
	Allocated *int32 `json:"allocated,omitempty"`

	// available is how many of them a claim without tolerations could get now.
	// +required
	// +kubebuilder:validation:Minimum=0
	Available *int32 `json:"available,omitempty"`

	// unavailable is how many are neither: tainted NoSchedule or NoExecute, on no ready and schedulable node, or blocked
	// by an allocated device with which they share hardware.
	// +required
	// +kubebuilder:validation:Minimum=0
	Unavailable *int32 `json:"unavailable,omitempty"`
}

// ModelCounts counts the devices of one product name.
type ModelCounts struct {
	// name is the product name as the driver publishes it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`

	// total is how many devices of the model the pool has.
	// +required
	// +kubebuilder:validation:Minimum=0
	Total *int32 `json:"total,omitempty"`

	// allocated is how many of them are allocated, in the sense of devices.allocated.
	// +required
	// +kubebuilder:validation:Minimum=0
	Allocated *int32 `json:"allocated,omitempty"`

	// available is how many of them are available, in the sense of devices.available.
	// +required
	// +kubebuilder:validation:Minimum=0
	Available *int32 `json:"available,omitempty"`
}

// ExcludedDevices counts devices that one field of spec.devices keeps out.
type ExcludedDevices struct {
	// field is the path of the field, for example devices.memory or devices.attributes[1].
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Field string `json:"field,omitempty"`

	// devices is how many devices it keeps out that the fields before it let through.
	// +required
	// +kubebuilder:validation:Minimum=1
	Devices int32 `json:"devices,omitempty"`

	// detail is the published value that comes nearest to what the field asks for, for example "81559Mi is below 80Gi", or
	// that the devices do not publish the property.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Detail string `json:"detail,omitempty"`
}
