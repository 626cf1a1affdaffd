package inventory

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// counterID is a counter of a resource pool.
type counterID struct {
	set, counter Symbol
}

// hardware is what the devices of one resource pool share: counters, and cards that go by several names.
type hardware struct {
	// idle is what the counters of the pool hold, left what allocated devices leave of it. Below zero is none.
	idle, left map[counterID]resource.Quantity
	// overdrawn are the counters of which less than nothing is left.
	overdrawn []counterID
	cards     cards
	// allocatedOn are the allocated devices by the names of their cards.
	allocatedOn map[cardName][]*Device
}

func newHardware(pool *resourcePool, holders holders, keys CardKeys) *hardware {
	h := &hardware{
		idle:        map[counterID]resource.Quantity{},
		left:        map[counterID]resource.Quantity{},
		cards:       newCards(pool, keys),
		allocatedOn: map[cardName][]*Device{},
	}
	for _, slice := range pool.slices {
		for _, set := range slice.CounterSets {
			for _, counter := range set.Counters {
				id, amount := counterID{set.Name, counter.Name}, counter.Amount.Quantity()
				h.idle[id], h.left[id] = amount, amount
			}
		}
	}
	for _, slice := range pool.slices {
		for i := range slice.Devices {
			if device := &slice.Devices[i]; len(holders[deviceID{pool.name, device.Name}]) > 0 {
				h.allocate(device)
			}
		}
	}
	for id, left := range h.left {
		if left.Sign() < 0 {
			h.overdrawn = append(h.overdrawn, id)
		}
	}
	return h
}

// allocate takes what a device consumes, once, however many claims share it.
func (h *hardware) allocate(device *Device) {
	for id, amount := range consumption(device) {
		left := h.left[id]
		left.Sub(amount)
		h.left[id] = left
	}
	for _, name := range h.cards.names(device) {
		h.allocatedOn[name] = append(h.allocatedOn[name], device)
	}
}

// countersUsedUp says whether too little is left of the counters for a device that is not allocated.
//
// The scheduler asks of every counter of the resource pool that at least as much is left as the device takes of it,
// which is nothing for most. A counter below zero thus blocks every device of the pool that consumes any counter
// (k8s.io/dynamic-resource-allocation/structured, checkAvailableCounters).
func (h *hardware) countersUsedUp(device *Device) bool {
	if len(device.Consumes) == 0 {
		return false
	}
	wanted := consumption(device)
	for id, amount := range wanted {
		if left := h.left[id]; left.Cmp(amount) < 0 {
			return true
		}
	}
	for _, id := range h.overdrawn {
		if left := h.left[id]; left.Cmp(wanted[id]) < 0 {
			return true
		}
	}
	return false
}

// aliasAllocated says whether the card of a device is allocated under another name.
func (h *hardware) aliasAllocated(device *Device) bool {
	for _, name := range h.cards.names(device) {
		for _, allocated := range h.allocatedOn[name] {
			if h.cards.aliases(device, allocated) {
				return true
			}
		}
	}
	return false
}

// coexist says whether devices of the resource pool could all be allocated at once if nothing were: no counter would go
// below zero, and no two of them are one card.
func (h *hardware) coexist(devices []*Device) bool {
	together := map[counterID]resource.Quantity{}
	consumes := false
	onCard := map[cardName][]*Device{}
	for _, device := range devices {
		consumes = consumes || len(device.Consumes) > 0
		for id, amount := range consumption(device) {
			sum := together[id]
			sum.Add(amount)
			together[id] = sum
		}
		for _, name := range h.cards.names(device) {
			for _, other := range onCard[name] {
				if h.cards.aliases(device, other) {
					return false
				}
			}
			onCard[name] = append(onCard[name], device)
		}
	}
	for id, idle := range h.idle {
		if consumes && idle.Cmp(together[id]) < 0 {
			return false
		}
	}
	return true
}

// consumption is what a device takes of each counter while it is allocated.
func consumption(device *Device) map[counterID]resource.Quantity {
	if len(device.Consumes) == 0 {
		return nil
	}
	amounts := map[counterID]resource.Quantity{}
	for _, set := range device.Consumes {
		for _, counter := range set.Counters {
			id := counterID{set.Name, counter.Name}
			sum := amounts[id]
			sum.Add(counter.Amount.Quantity())
			amounts[id] = sum
		}
	}
	return amounts
}

// cards tells which devices of one resource pool are on one card.
type cards struct {
	driver string
	keys   CardKeys
	// nodes are the nodes of devices that one node reaches.
	nodes map[*Device]Symbol
}

// cardName is a name of a card: what an attribute says on a node. A bus address is there once on each node; a resource
// pool may have devices of several.
type cardName struct {
	node  Symbol
	value attributeValue
}

func newCards(pool *resourcePool, keys CardKeys) cards {
	c := cards{driver: pool.driver.String(), keys: keys, nodes: map[*Device]Symbol{}}
	if len(keys.Self)+len(keys.Parent) == 0 {
		return c
	}
	for _, slice := range pool.slices {
		for i := range slice.Devices {
			c.nodes[&slice.Devices[i]] = slice.scopeOf(&slice.Devices[i]).Node
		}
	}
	return c
}

// names are the names that a device has for the card that it is on.
func (c cards) names(device *Device) []cardName {
	values := append(c.values(device, c.keys.Self), c.values(device, c.keys.Parent)...)
	names := make([]cardName, 0, len(values))
	for _, value := range values {
		names = append(names, cardName{node: c.nodes[device], value: value})
	}
	return names
}

// values are the values of those of the attributes that a device has and that are not empty.
func (c cards) values(device *Device, attributes []string) []attributeValue {
	var values []attributeValue
	for _, name := range attributes {
		value, found := device.attribute(c.driver, name)
		if found && value != (attributeValue{form: formString}) {
			values = append(values, value)
		}
	}
	return values
}

// aliases says whether two devices that have a name of their card in common are the same hardware.
func (c cards) aliases(a, b *Device) bool {
	if a == b || shareCounters(a, b) {
		return false
	}
	bothParts := len(c.values(a, c.keys.Parent)) > 0 && len(c.values(b, c.keys.Parent)) > 0
	return !bothParts
}

func shareCounters(a, b *Device) bool {
	return slices.ContainsFunc(a.Consumes, func(of CounterSet) bool {
		return slices.ContainsFunc(b.Consumes, func(other CounterSet) bool { return other.Name == of.Name })
	})
}

// taints are the taints of the devices of one resource pool.
type taints struct {
	// rules are those that match devices of the pool and keep claims off.
	rules []*TaintRule
}

func newTaints(pool *resourcePool, rules []*TaintRule) taints {
	var t taints
	for _, rule := range rules {
		if rule.Taint.KeepsOff() && rule.matchesPool(pool.driver, pool.name) {
			t.rules = append(t.rules, rule)
		}
	}
	return t
}

// keepOff says whether a taint of its slice or of a rule keeps claims without tolerations off a device.
func (t taints) keepOff(device *Device) bool {
	return slices.ContainsFunc(device.Taints, Taint.KeepsOff) ||
		slices.ContainsFunc(t.rules, func(rule *TaintRule) bool { return rule.matchesDevice(device.Name) })
}
