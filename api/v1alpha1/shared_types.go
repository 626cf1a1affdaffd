package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	// memory bounds the device memory that the driver publishes, both ends included. Cards publish a little less than
	// their name says: an 80 GB card publishes 81559Mi, which is below 80Gi. A device that publishes no memory matches
	// no bound. Unset means any size.
	// +optional
	Memory *QuantityRange `json:"memory,omitempty"`

	// attributes are conditions on single DRA attributes, for what the other fields do not cover; all must hold.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Attributes []AttributeRequirement `json:"attributes,omitempty"`

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
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || !isQuantity(self.min) || !isQuantity(self.max) || quantity(self.min).compareTo(quantity(self.max)) <= 0",message="min must be at most max"
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
