package inventory

import (
	"k8s.io/apimachinery/pkg/types"
)

// Kind is a kind of object that the inventory holds.
type Kind uint8

// Kinds of objects.
const (
	Slices Kind = iota
	Claims
	// Pods are those that wait to be placed; the inventory holds no others.
	Pods
	Nodes
	TaintRules

	kinds
)

// String is the plural of the API kind.
func (k Kind) String() string {
	switch k {
	case Slices:
		return "ResourceSlices"
	case Claims:
		return "ResourceClaims"
	case Pods:
		return "Pods"
	case Nodes:
		return "Nodes"
	case TaintRules:
		return "DeviceTaintRules"
	case kinds:
	}
	return "unknown"
}

// Object is a *Slice, *Claim, *Pod, *Node or *TaintRule.
type Object interface {
	// Key is the object's namespace, where its kind has one, and name.
	Key() types.NamespacedName

	kind() Kind
}
