package inventory

import (
	"k8s.io/apimachinery/pkg/util/sets"
)

// resourcePool is a resource pool of one driver: its slices of the highest generation.
type resourcePool struct {
	driver, name Symbol
	slices       []*Slice
	// incomplete is why the scheduler allocates nothing from the pool; empty where it does.
	incomplete IncompleteReason
}

// resourcePools are the resource pools of a driver. Slices of older generations do not count, however many of the
// newest one are there (resource.k8s.io/v1 ResourcePool, and GatherPools of
// k8s.io/dynamic-resource-allocation/structured).
func resourcePools(all []*Slice, driver Symbol) []*resourcePool {
	byName := map[Symbol]*resourcePool{}
	var pools []*resourcePool
	for _, slice := range all {
		if slice.Driver != driver {
			continue
		}
		pool, found := byName[slice.Pool]
		if !found {
			pool = &resourcePool{driver: driver, name: slice.Pool}
			byName[slice.Pool] = pool
			pools = append(pools, pool)
		}
		if len(pool.slices) > 0 && slice.Generation > pool.slices[0].Generation {
			pool.slices = nil
		}
		if len(pool.slices) == 0 || slice.Generation == pool.slices[0].Generation {
			pool.slices = append(pool.slices, slice)
		}
	}
	for _, pool := range pools {
		pool.incomplete = whyIncomplete(pool.slices)
	}
	return pools
}

// whyIncomplete judges the slices of one generation. The order of the rules is that of IncompleteReason.
func whyIncomplete(current []*Slice) IncompleteReason {
	announced := current[0].SliceCount
	for _, slice := range current {
		if slice.SliceCount != announced {
			return CountsDisagree
		}
	}
	switch present := int64(len(current)); {
	case present < announced:
		return FewerSlices
	case present > announced:
		return MoreSlices
	}
	if deviceTwice(current) {
		return DuplicateDevice
	}
	return whyCountersInvalid(current)
}

func deviceTwice(current []*Slice) bool {
	names := sets.New[Symbol]()
	for _, slice := range current {
		for i := range slice.Devices {
			if names.Has(slice.Devices[i].Name) {
				return true
			}
			names.Insert(slice.Devices[i].Name)
		}
	}
	return false
}

func whyCountersInvalid(current []*Slice) IncompleteReason {
	known := map[Symbol]sets.Set[Symbol]{}
	for _, slice := range current {
		for _, set := range slice.CounterSets {
			if _, twice := known[set.Name]; twice {
				return DuplicateCounterSet
			}
			known[set.Name] = sets.New[Symbol]()
			for _, counter := range set.Counters {
				known[set.Name].Insert(counter.Name)
			}
		}
	}
	for _, slice := range current {
		for i := range slice.Devices {
			if !consumesOnly(&slice.Devices[i], known) {
				return UnknownCounter
			}
		}
	}
	return ""
}

// consumesOnly says whether a device consumes of known counter sets and counters only.
func consumesOnly(device *Device, known map[Symbol]sets.Set[Symbol]) bool {
	for _, set := range device.Consumes {
		counters, found := known[set.Name]
		if !found {
			return false
		}
		for _, counter := range set.Counters {
			if !counters.Has(counter.Name) {
				return false
			}
		}
	}
	return true
}

// fleet is the nodes of a cluster, and which of them a query selects.
type fleet struct {
	nodes    []*Node
	selected sets.Set[*Node]
	all      reach
	byName   map[Symbol]reach
	// bySelector remembers what a node selector reaches: many devices share one selector.
	bySelector map[Symbol]reach
}

// reach is which nodes reach a device.
type reach struct {
	// selected are those that the query selects.
	selected []*Node
	// takesPods is whether any, selected or not, is a node on which pods may be scheduled.
	takesPods bool
}

func newFleet(nodes []*Node, selector *NodeMatcher) *fleet {
	f := &fleet{
		nodes:      nodes,
		selected:   sets.New[*Node](),
		byName:     make(map[Symbol]reach, len(nodes)),
		bySelector: map[Symbol]reach{},
	}
	f.selected.Insert(f.matching(selector)...)
	for _, node := range nodes {
		f.byName[node.Name] = f.reachOf(node)
	}
	f.all = f.reachOf(nodes...)
	return f
}

// reach is which nodes reach what has a scope. A node that does not exist reaches nothing.
func (f *fleet) reach(scope Scope) reach {
	switch scope.Kind {
	case ScopeNode:
		return f.byName[scope.Node]
	case ScopeAllNodes:
		return f.all
	case ScopeSelector:
		known, found := f.bySelector[scope.Selector.text]
		if !found {
			known = f.reachOf(f.matching(scope.Selector)...)
			f.bySelector[scope.Selector.text] = known
		}
		return known
	case ScopeUnknown, ScopePerDevice:
	}
	return reach{}
}

func (f *fleet) matching(selector *NodeMatcher) []*Node {
	var matching []*Node
	for _, node := range f.nodes {
		if selector.Matches(node) {
			matching = append(matching, node)
		}
	}
	return matching
}

func (f *fleet) reachOf(nodes ...*Node) reach {
	var r reach
	for _, node := range nodes {
		if f.selected.Has(node) {
			r.selected = append(r.selected, node)
		}
		r.takesPods = r.takesPods || node.takesPods()
	}
	return r
}
