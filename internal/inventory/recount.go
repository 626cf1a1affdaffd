package inventory

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// world is a cluster as plain lists, in any order.
type world struct {
	slices     []*Slice
	claims     []*Claim
	pods       []*Pod
	nodes      []*Node
	taintRules []*TaintRule
}

// recountPool is the specification of PoolCounts.
func recountPool(w world, query PoolQuery) PoolCounts {
	driver, class := Intern(query.Driver), Intern(query.ClassName)
	r := poolRecount{
		query:      query,
		class:      class,
		rules:      w.taintRules,
		fleet:      newFleet(w.nodes, query.Nodes),
		holders:    holdersOf(w.claims, driver),
		publishing: sets.New[*Node](),
		equipped:   sets.New[*Node](),
		coexist:    true,
		excluded:   map[Verdict]int{},
		models:     map[string]ModelCounts{},
	}
	pools := resourcePools(w.slices, driver)
	for _, pool := range pools {
		r.addPool(pool)
	}

	counts := r.counts
	counts.Nodes = NodeCounts{
		Selected:    len(r.fleet.selected),
		Publishing:  len(r.publishing),
		WithDevices: len(r.equipped),
	}
	if r.coexist {
		counts.Devices = &r.devices
		counts.Models = r.sortedModels()
	}
	counts.Excluded = r.sortedExclusions()
	counts.Orphaned = orphans(r.holders, class, pools)
	counts.Claims = countClaims(w, everyClaim, func(named Symbol) bool { return named == class })
	return counts
}

// recountProfile is the specification of ProfileClaims.
func recountProfile(w world, profile string) ClaimCounts {
	label := Intern(profile)
	return countClaims(w, func(claim *Claim) bool { return claim.Profile == label }, everyClass)
}

// poolRecount is the state of one recount of a pool.
type poolRecount struct {
	query   PoolQuery
	class   Symbol
	rules   []*TaintRule
	fleet   *fleet
	holders holders

	counts  PoolCounts
	devices DeviceCounts
	// publishing and equipped are the selected nodes that reach a slice of the driver, and a selected device.
	publishing, equipped sets.Set[*Node]
	// excluded counts devices by the verdict that keeps them out, models by product name.
	excluded map[Verdict]int
	models   map[string]ModelCounts
	// coexist is whether all devices counted so far could be allocated at once on an idle fleet.
	coexist bool
}

func (r *poolRecount) sortedModels() []ModelCounts {
	var models []ModelCounts
	for _, name := range slices.Sorted(maps.Keys(r.models)) {
		counts := r.models[name]
		counts.Name = name
		models = append(models, counts)
	}
	return models
}

func (r *poolRecount) sortedExclusions() []Exclusion {
	var exclusions []Exclusion
	for verdict, devices := range r.excluded {
		exclusions = append(exclusions, Exclusion{
			Selector: verdict.Selector, Value: verdict.Value, Failure: verdict.Failure, Devices: devices,
		})
	}
	slices.SortFunc(exclusions, func(a, b Exclusion) int {
		return cmp.Or(cmp.Compare(a.Selector, b.Selector), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Failure, b.Failure))
	})
	return exclusions
}

// addPool counts a resource pool of the driver, and its devices if it is complete.
func (r *poolRecount) addPool(pool *resourcePool) {
	selected := r.nodesReaching(pool)
	r.publishing.Insert(selected...)
	if len(selected) > 0 {
		r.counts.ResourcePools.Total++
	}
	if pool.incomplete == "" {
		r.addDevices(pool)
	} else if len(selected) > 0 {
		counts := &r.counts.ResourcePools
		counts.Incomplete++
		counts.IncompleteReasons = plusOne(counts.IncompleteReasons, pool.incomplete)
	}
}

// nodesReaching are the selected nodes that reach a slice of a resource pool. A slice with a scope for each device is
// reached by way of a device.
func (r *poolRecount) nodesReaching(pool *resourcePool) []*Node {
	var nodes []*Node
	for _, slice := range pool.slices {
		if slice.Scope.Kind != ScopePerDevice {
			nodes = append(nodes, r.fleet.reach(slice.Scope).selected...)
			continue
		}
		for i := range slice.Devices {
			nodes = append(nodes, r.fleet.reach(slice.scopeOf(&slice.Devices[i])).selected...)
		}
	}
	return nodes
}

// addDevices counts each selected device of a complete resource pool once, however many nodes reach it.
func (r *poolRecount) addDevices(pool *resourcePool) {
	blocks := newBlocks(pool, r.holders, r.rules, r.query.CardKeys)
	var counted []*Device
	for _, slice := range pool.slices {
		for i := range slice.Devices {
			device := &slice.Devices[i]
			scope := slice.scopeOf(device)
			if scope.Kind == ScopeUnknown {
				continue
			}
			reach := r.fleet.reach(scope)
			if !r.selects(device, reach) {
				continue
			}
			r.equipped.Insert(reach.selected...)
			counted = append(counted, device)
			r.addDevice(pool, device, reach, blocks)
		}
	}
	r.coexist = r.coexist && blocks.hardware.coexist(counted)
}

// selects says whether a device is selected and reached by a selected node, and counts what keeps out one that is not.
func (r *poolRecount) selects(device *Device, reach reach) bool {
	verdict := Verdict{Matches: true}
	if r.query.Devices != nil {
		verdict = r.query.Devices.Judge(r.query.Driver, device)
	}
	if verdict.Failure != "" {
		r.counts.SelectorErrors++
	}
	inScope := len(reach.selected) > 0
	switch {
	case verdict.Matches && !inScope:
		r.counts.OutOfScope++
	case !verdict.Matches && inScope:
		r.excluded[verdict]++
	}
	return verdict.Matches && inScope
}

// addDevice counts a selected device. What is allocated is allocated, even if it is also tainted or out of reach by
// now.
func (r *poolRecount) addDevice(pool *resourcePool, device *Device, reach reach, blocks blocks) {
	state := ModelCounts{Total: 1}
	if classes := r.holders[deviceID{pool.name, device.Name}]; len(classes) > 0 {
		r.devices.addAllocated(classes, r.class)
		state.Allocated = 1
	} else {
		reason := blocks.whyUnavailable(device, reach)
		r.devices.addFree(reason)
		if reason == "" {
			state.Available = 1
		}
	}
	if r.query.Model == "" {
		return
	}
	model, found := device.attribute(r.query.Driver, r.query.Model)
	if found && model.form == formString && model.text != "" {
		sum := r.models[model.text]
		sum.Total += state.Total
		sum.Allocated += state.Allocated
		sum.Available += state.Available
		r.models[model.text] = sum
	}
}

func (c *DeviceCounts) addAllocated(holders []Symbol, class Symbol) {
	c.Total++
	c.Allocated++
	if !slices.Contains(holders, class) {
		c.AllocatedElsewhere++
	}
}

// addFree counts a device that is not allocated; no reason is an available one.
func (c *DeviceCounts) addFree(reason UnavailableReason) {
	c.Total++
	if reason == "" {
		c.Available++
		return
	}
	c.Unavailable++
	c.UnavailableReasons = plusOne(c.UnavailableReasons, reason)
}

// plusOne adds one to a reason of a map, which its first reason makes.
func plusOne[R ~string](reasons map[R]int, reason R) map[R]int {
	if reasons == nil {
		reasons = map[R]int{}
	}
	reasons[reason]++
	return reasons
}

// blocks is what keeps devices of one resource pool from being allocated.
type blocks struct {
	taints   taints
	hardware *hardware
}

func newBlocks(pool *resourcePool, holders holders, rules []*TaintRule, keys CardKeys) blocks {
	return blocks{taints: newTaints(pool, rules), hardware: newHardware(pool, holders, keys)}
}

// whyUnavailable is why a device that is not allocated cannot be had; empty where it can. The order of the rules is
// that of UnavailableReason.
func (b blocks) whyUnavailable(device *Device, reach reach) UnavailableReason {
	switch {
	case b.taints.keepOff(device):
		return Tainted
	case b.hardware.countersUsedUp(device):
		return PartitionInUse
	case b.hardware.aliasAllocated(device):
		return Aliased
	case !reach.takesPods:
		return NodeUnschedulable
	}
	return ""
}
