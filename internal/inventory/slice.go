package inventory

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Slice is a ResourceSlice.
type Slice struct {
	Name string
	UID  UID
	// Driver and Pool together are the resource pool; a pool name alone is not unique.
	Driver, Pool Symbol
	// Generation is that of the resource pool; only slices of the highest one count.
	Generation int64
	// SliceCount is of how many slices the resource pool consists in this generation.
	SliceCount int64
	Scope      Scope
	// OwnerNode is the Node that owns the slice; zero if none does.
	OwnerNode UID
	// Devices are in the order in which the driver lists them.
	Devices []Device
	// CounterSets are the counters that devices of the resource pool share.
	CounterSets []CounterSet
}

// ScopeKind is how a slice or a device says from which nodes it is reachable.
type ScopeKind uint8

// Kinds of scopes. A ResourceSlice has exactly one.
const (
	// ScopeUnknown is a way of a later Kubernetes, or a node selector that does not parse. Devices in such a scope are
	// in no count, as they are out of the scheduler's sight; the slice still counts for the completeness of its pool.
	ScopeUnknown ScopeKind = iota
	// ScopeNode is one node, by name.
	ScopeNode
	// ScopeSelector is the nodes that a selector matches.
	ScopeSelector
	// ScopeAllNodes is every node.
	ScopeAllNodes
	// ScopePerDevice is a scope for each device of a slice.
	ScopePerDevice
)

// Scope is from which nodes a slice or a device is reachable.
type Scope struct {
	Kind ScopeKind
	// Node is the node's name in a ScopeNode.
	Node Symbol
	// Selector is the selector in a ScopeSelector.
	Selector *NodeMatcher
}

func (*Slice) kind() Kind { return Slices }

// Key is the slice's name.
func (s *Slice) Key() types.NamespacedName { return types.NamespacedName{Name: s.Name} }

// FromSlice makes the compact form of a ResourceSlice.
func FromSlice(slice *resourcev1.ResourceSlice) *Slice {
	spec := &slice.Spec
	compact := &Slice{
		Name:        slice.Name,
		UID:         packUID(slice.UID),
		Driver:      Intern(spec.Driver),
		Pool:        Intern(spec.Pool.Name),
		Generation:  spec.Pool.Generation,
		SliceCount:  spec.Pool.ResourceSliceCount,
		Scope:       newScope(spec.NodeName, spec.NodeSelector, spec.AllNodes),
		OwnerNode:   owner(slice.OwnerReferences, corev1.SchemeGroupVersion.String(), "Node"),
		CounterSets: newSharedCounters(spec.SharedCounters),
	}
	perDevice := compact.Scope.Kind == ScopeUnknown && valueOf(spec.PerDeviceNodeSelection)
	if perDevice {
		compact.Scope.Kind = ScopePerDevice
	}
	if len(spec.Devices) > 0 {
		compact.Devices = make([]Device, len(spec.Devices))
	}
	for i := range spec.Devices {
		compact.Devices[i] = newDevice(&spec.Devices[i])
		if perDevice {
			d := &spec.Devices[i]
			compact.Devices[i].Scope = new(newScope(d.NodeName, d.NodeSelector, d.AllNodes))
		}
	}
	return compact
}

// scopeOf is from which nodes a device of the slice is reachable.
func (s *Slice) scopeOf(d *Device) Scope {
	if s.Scope.Kind == ScopePerDevice && d.Scope != nil {
		return *d.Scope
	}
	return s.Scope
}

// newScope reads the fields in the order in which the scheduler reads them
// (k8s.io/dynamic-resource-allocation/structured, NodeMatches).
func newScope(nodeName *string, selector *corev1.NodeSelector, allNodes *bool) Scope {
	switch {
	case valueOf(nodeName) != "":
		return Scope{Kind: ScopeNode, Node: Intern(*nodeName)}
	case valueOf(allNodes):
		return Scope{Kind: ScopeAllNodes}
	case selector != nil:
		if matcher, err := NewNodeMatcher(selector.NodeSelectorTerms); err == nil {
			return Scope{Kind: ScopeSelector, Selector: matcher}
		}
	}
	return Scope{}
}

func newDevice(d *resourcev1.Device) Device {
	compact := Device{
		Name:   Intern(d.Name),
		Shared: valueOf(d.AllowMultipleAllocations),
	}
	if len(d.Attributes) > 0 {
		compact.Attributes = make([]Attribute, 0, len(d.Attributes))
		for _, name := range sortedKeys(d.Attributes) {
			compact.Attributes = append(compact.Attributes, newAttribute(name, d.Attributes[name]))
		}
	}
	if len(d.Capacity) > 0 {
		compact.Capacity = make([]Capacity, 0, len(d.Capacity))
		for _, name := range sortedKeys(d.Capacity) {
			compact.Capacity = append(compact.Capacity, newDeviceCapacity(name, d.Capacity[name]))
		}
	}
	for i := range d.ConsumesCounters {
		consumption := &d.ConsumesCounters[i]
		compact.Consumes = append(compact.Consumes, newCounterSet(consumption.CounterSet, consumption.Counters))
	}
	for i := range d.Taints {
		compact.Taints = append(compact.Taints, newTaint(&d.Taints[i]))
	}
	return compact
}

func newSharedCounters(sets []resourcev1.CounterSet) []CounterSet {
	var compact []CounterSet
	for i := range sets {
		compact = append(compact, newCounterSet(sets[i].Name, sets[i].Counters))
	}
	return compact
}

func newCounterSet(name string, counters map[string]resourcev1.Counter) CounterSet {
	set := CounterSet{Name: Intern(name)}
	for _, counter := range sortedKeys(counters) {
		set.Counters = append(set.Counters, Counter{Name: Intern(counter), Amount: newAmount(counters[counter].Value)})
	}
	return set
}

func newTaint(t *resourcev1.DeviceTaint) Taint {
	return Taint{Key: Intern(t.Key), Value: Intern(t.Value), Effect: Intern(string(t.Effect))}
}

// owner is the UID of the first owner of a kind; zero if there is none.
func owner(references []metav1.OwnerReference, apiVersion, kind string) UID {
	for i := range references {
		if r := &references[i]; r.APIVersion == apiVersion && r.Kind == kind {
			return packUID(r.UID)
		}
	}
	return UID{}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// valueOf is what an optional field points to; the zero value where it is unset.
func valueOf[T any](field *T) T {
	if field == nil {
		var unset T
		return unset
	}
	return *field
}
