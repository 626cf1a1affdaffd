package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeviceSelector narrows the devices of one driver. An unset field is no condition; all set fields must hold.
//
// Each field becomes one DRA selector. Driver and type together take one, the fields of this struct at most the rest of
// the 32 that a DeviceClass or a request may have (resource.k8s.io/v1 DeviceSelectorsMaxSize).
//
// +kubebuilder:validation:MinProperties=1
type DeviceSelector struct {
	// models are product names as the driver publishes them, each exact or, ending in one "*", a prefix. A device matches
	// if any entry does; a device that publishes no product name never matches. Unset means any model.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[^*]+[*]?$')",message="must be a product name, or a prefix of one followed by a single *, for example NVIDIA H100*"
	Models []string `json:"models,omitempty"`

	// architectures are names of hardware generations as the driver publishes them, such as Hopper, each exact or, ending
	// in one "*", a prefix. A device matches if any entry does; a device that publishes none never matches. Unset means
	// any architecture.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[^*]+[*]?$')",message="must be an architecture, or a prefix of one followed by a single *, for example Hopper"
	Architectures []string `json:"architectures,omitempty"`

	// partitionProfiles are names of partition shapes as the driver publishes them, such as 1g.10gb or cpx_nps4, each
	// exact or, ending in one "*", a prefix. A device matches if any entry does; a device that publishes none never
	// matches. Unset means any profile.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[^*]+[*]?$')",message="must be a partition profile, or a prefix of one followed by a single *, for example 1g.*"
	PartitionProfiles []string `json:"partitionProfiles,omitempty"`

	// memory bounds the device memory that the driver publishes, both ends included. Cards publish a little less than
	// their name says: an 80 GB card publishes 81559Mi, which is below 80Gi. A device that publishes no memory matches
	// no bound. Unset means any size.
	// +optional
	Memory *QuantityRange `json:"memory,omitempty"`

	// cudaComputeCapability bounds NVIDIA's CUDA compute capability, such as 8.0, both ends included. A device that
	// publishes none matches no bound. Unset means any capability.
	// +optional
	CUDAComputeCapability *VersionRange `json:"cudaComputeCapability,omitempty"`

	// gpuDriverVersion bounds the version of the GPU's kernel driver (not of the DRA driver), such as 550.127.08, both
	// ends included. A device that publishes none matches no bound. Unset means any version.
	// +optional
	GPUDriverVersion *VersionRange `json:"gpuDriverVersion,omitempty"`

	// sharing selects by whether claims take a device whole. Exclusive selects only devices that one claim takes whole,
	// Shared only devices that several claims may take parts of (allowMultipleAllocations of the ResourceSlice). Unset
	// means both.
	// +optional
	Sharing DeviceSharing `json:"sharing,omitempty"`

	// attributes are conditions on single DRA attributes, for what the other fields do not cover; all must hold.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Attributes []AttributeRequirement `json:"attributes,omitempty"`

	// capacity are bounds on single DRA capacities of the whole device, for what memory does not cover; all must hold.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Capacity []CapacityRequirement `json:"capacity,omitempty"`

	// selectors are raw DRA selectors, written as in a DeviceClass, and added unchanged after the generated ones. An
	// expression that reads an attribute which some device of the driver does not publish makes the scheduler refuse
	// every pod: guard it with has() or .?name.orValue().
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Selectors []RawSelector `json:"selectors,omitempty"`
}

// RawSelector is one DRA device selector, in the shape of resource.k8s.io/v1 DeviceSelector.
// +kubebuilder:validation:ExactlyOneOf=cel
type RawSelector struct {
	// cel is a CEL expression over the variable device, as in a DeviceClass.
	// +optional
	CEL *CELSelector `json:"cel,omitempty"`
}

// CELSelector is a CEL expression in the environment of DRA device selectors.
type CELSelector struct {
	// expression must evaluate to a bool, and cost at most what Kubernetes allows in a device selector. It is compiled
	// with the scheduler's own compiler before anything is written; Accepted=False says what is wrong with it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// QuantityRange is a closed interval of sizes.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min.matches('[eE]') || self.max.matches('[eE]') || !isQuantity(self.min) || !isQuantity(self.max) || quantity(self.min).compareTo(quantity(self.max)) <= 0",message="min must be at most max"
type QuantityRange struct {
	// min is the smallest size that matches, with a unit, for example 75Gi; unset means no lower bound.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+([.][0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)$')",message="must be a quantity with a unit, for example 75Gi"
	Min *resource.Quantity `json:"min,omitempty"`

	// max is the largest size that matches, with a unit, for example 80Gi; unset means no upper bound.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+([.][0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)$')",message="must be a quantity with a unit, for example 75Gi"
	Max *resource.Quantity `json:"max,omitempty"`
}

// DeviceSharing is how claims take a device.
// +kubebuilder:validation:Enum=Exclusive;Shared
type DeviceSharing string

// Ways of taking a device.
const (
	// SharingExclusive is a device that one claim takes whole.
	SharingExclusive DeviceSharing = "Exclusive"
	// SharingShared is a device that several claims may take parts of.
	SharingShared DeviceSharing = "Shared"
)

// VersionRange is a closed interval of versions, compared number by number. Numbers that min leaves out count as 0,
// those that max leaves out as any: max 580 includes 580.126.20.
// +kubebuilder:validation:MinProperties=1
type VersionRange struct {
	// min is the lowest version that matches, one to three numbers, for example 550.127.08; unset means no lower bound.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,9}([.][0-9]{1,9}){0,2}$')",message="must be one to three numbers joined by dots, for example 550.127.08"
	Min string `json:"min,omitempty"`

	// max is the highest version that matches, one to three numbers, for example 580; unset means no upper bound.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,9}([.][0-9]{1,9}){0,2}$')",message="must be one to three numbers joined by dots, for example 550.127.08"
	Max string `json:"max,omitempty"`
}

// CapacityRequirement bounds one DRA capacity of a device.
// +kubebuilder:validation:AtLeastOneOf=min;max
type CapacityRequirement struct {
	// name is the capacity, bare if it is in the domain of the pool's driver (multiprocessors), else as domain/name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?[A-Za-z_][A-Za-z0-9_]{0,31}$') && self.indexOf('/') <= 63",message="must be a capacity name such as multiprocessors, or domain/name such as dra.cpu/cpu"
	Name string `json:"name,omitempty"`

	// min is the smallest amount that matches, for example 10Gi or 2; unset means no lower bound.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^[0-9]+([.][0-9]+)?([numkMGTPE]|[KMGTPE]i)?$')",message="must be a quantity of 0 or more without an exponent, for example 10Gi or 2"
	Min *resource.Quantity `json:"min,omitempty"`

	// max is the largest amount that matches, for example 10Gi or 2; unset means no upper bound.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^[0-9]+([.][0-9]+)?([numkMGTPE]|[KMGTPE]i)?$')",message="must be a quantity of 0 or more without an exponent, for example 10Gi or 2"
	Max *resource.Quantity `json:"max,omitempty"`
}

// OpaqueDeviceConfig is configuration that only the named driver understands, as in resource.k8s.io/v1.
type OpaqueDeviceConfig struct {
	// driver is the DRA driver that reads parameters; other drivers skip them.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a DNS subdomain, for example gpu.nvidia.com"
	Driver string `json:"driver,omitempty"`

	// parameters is an object with apiVersion and kind as the driver documents them, of at most 10 KiB as JSON. The driver
	// judges it when a pod starts; Kubernetes and the operator do not look into it.
	// +required
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:validation:MaxProperties=64
	Parameters runtime.RawExtension `json:"parameters,omitzero"`
}

// AttributeType is the type of a DRA attribute's value (resource.k8s.io/v1 DeviceAttribute).
// +kubebuilder:validation:Enum=String;Int;Bool;Version
type AttributeType string

// Types of DRA attributes.
const (
	AttributeString  AttributeType = "String"
	AttributeInt     AttributeType = "Int"
	AttributeBool    AttributeType = "Bool"
	AttributeVersion AttributeType = "Version"
)

// AttributeOperator relates an attribute to values.
// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;AtLeast;AtMost
type AttributeOperator string

// Operators of AttributeRequirement.
const (
	AttributeIn           AttributeOperator = "In"
	AttributeNotIn        AttributeOperator = "NotIn"
	AttributeExists       AttributeOperator = "Exists"
	AttributeDoesNotExist AttributeOperator = "DoesNotExist"
	AttributeAtLeast      AttributeOperator = "AtLeast"
	AttributeAtMost       AttributeOperator = "AtMost"
)

// AttributeRequirement is a condition on one DRA attribute.
// +kubebuilder:validation:XValidation:rule="self.operator in ['Exists', 'DoesNotExist'] ? !has(self.values) : has(self.values)",message="values must be set with In, NotIn, AtLeast and AtMost, and must not be set with Exists and DoesNotExist"
// +kubebuilder:validation:XValidation:rule="self.operator in ['AtLeast', 'AtMost'] ? (has(self.values) && size(self.values) == 1 && has(self.type) && self.type in ['Int', 'Version']) : true",message="AtLeast and AtMost must have exactly one value and type Int or Version"
// +kubebuilder:validation:XValidation:rule="!has(self.values) || !has(self.type) || self.type != 'Int' || self.values.all(v, v.matches('^-?[0-9]{1,18}$'))",message="values must be whole numbers when type is Int"
// +kubebuilder:validation:XValidation:rule="!has(self.values) || !has(self.type) || self.type != 'Bool' || self.values.all(v, v in ['true', 'false'])",message="values must be true or false when type is Bool"
// +kubebuilder:validation:XValidation:rule="!has(self.values) || !has(self.type) || self.type != 'Version' || self.values.all(v, v.matches('^[0-9]{1,9}([.][0-9]{1,9}){0,2}$'))",message="values must be versions of one to three numbers when type is Version, for example 12.4"
type AttributeRequirement struct {
	// name is the attribute, bare if it is in the domain of the pool's driver (uuid), else as domain/name
	// (resource.kubernetes.io/numaNode).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?[A-Za-z_][A-Za-z0-9_]{0,31}$') && self.indexOf('/') <= 63",message="must be an attribute name such as uuid, or domain/name such as resource.kubernetes.io/numaNode"
	Name string `json:"name,omitempty"`

	// type is the type of the attribute's value; unset means String. A published value of another type never matches In,
	// AtLeast and AtMost.
	// +optional
	Type AttributeType `json:"type,omitempty"`

	// operator relates the attribute to values. NotIn and DoesNotExist match a device that lacks the attribute, as label
	// selectors do; the others do not. AtLeast and AtMost compare whole numbers, or versions number by number; both ends
	// are included.
	// +required
	Operator AttributeOperator `json:"operator,omitempty"`

	// values are what operator compares with: any of them for In, none of them for NotIn, the single bound for AtLeast
	// and AtMost. Numbers that a version leaves out count as 0 for AtLeast, In and NotIn, and as any number for AtMost.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Values []string `json:"values,omitempty"`
}

// NamespaceSelector selects namespaces: those that names lists and those that selector matches, together.
// +kubebuilder:validation:AtLeastOneOf=names;selector
type NamespaceSelector struct {
	// names are namespaces, whether they exist yet or not. A name that does not exist is waited for, and reported as
	// NamespaceNotFound. Unset means that selector alone selects.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace"
	Names []string `json:"names,omitempty"`

	// selector selects namespaces by their labels; the empty selector {} selects every namespace. Unset means that names
	// alone select.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ClaimCounts counts ResourceClaims.
type ClaimCounts struct {
	// allocated is how many claims have an allocation, whatever became of their pods.
	// +required
	// +kubebuilder:validation:Minimum=0
	Allocated *int32 `json:"allocated,omitempty"`

	// pending is how many claims of live pods have no allocation.
	// +required
	// +kubebuilder:validation:Minimum=0
	Pending *int32 `json:"pending,omitempty"`
}
