package inventory

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
)

// menu is a resource pool of one node: a card with so much memory, another card, and the devices that they offer.
func menu(memory string, offered ...resourcev1.Device) []*Slice {
	return []*Slice{
		aSlice("counters", pool("a", 1, 2), onNode("a"), counterSets(map[string]string{"card": memory, "other": "1"})),
		aSlice("a", pool("a", 1, 2), devices(offered...)),
	}
}

func half(name string) resourcev1.Device { return aDevice(name, consumes("card", "40")) }

var (
	whole  = aDevice("whole", consumes("card", "80"))
	halves = matcherOf("half-0", "half-1")
)

func TestCoexist(t *testing.T) {
	a := []*Node{aNode("a")}
	check(t, map[string]rule{
		"halves of a card can all be allocated at once": {
			world: world{nodes: a, slices: menu("80", half("half-0"), half("half-1"))},
			want:  PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 2, Available: 2}},
		},
		"a card and its halves cannot": {
			world: world{nodes: a, slices: menu("80", whole, half("half-0"))},
			want:  PoolCounts{Nodes: oneNode, ResourcePools: onePool},
		},
		"a device that takes more than there is can never be allocated": {
			world: world{nodes: a, slices: menu("79", whole)},
			want:  PoolCounts{Nodes: oneNode, ResourcePools: onePool},
		},
		"devices that consume nothing do not mind a counter below zero": {
			world: world{nodes: a, slices: menu("-1", aDevice("plain"))},
			want:  PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 1, Available: 1}},
		},
		"fractions of a unit add up exactly": {
			world: world{nodes: a, slices: menu("1",
				aDevice("x", consumes("card", "500m")), aDevice("y", consumes("card", "0.5")),
			)},
			want: PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 2, Available: 2}},
		},
	})
}

func TestCountersUsedUp(t *testing.T) {
	a := []*Node{aNode("a")}
	check(t, map[string]rule{
		"what was allocated does not matter to an idle fleet": {
			world: world{
				nodes: a, slices: menu("80", whole, half("half-0"), half("half-1")),
				claims: []*Claim{aClaim("c", holds("a", "whole"))},
			},
			query: PoolQuery{Devices: halves},
			want: PoolCounts{
				Nodes: oneNode, ResourcePools: onePool, Devices: unavailable(2, 0, 0, PartitionInUse),
				Claims: ClaimCounts{Allocated: 1},
			},
		},
		"shares of a device consume once": {
			world: world{
				nodes: a, slices: menu("80", aDevice("half-0", shareable, consumes("card", "40")), half("half-1")),
				claims: []*Claim{aClaim("c", holds("a", "half-0", asShare("1"))), aClaim("d", holds("a", "half-0", asShare("2")))},
			},
			want: PoolCounts{
				Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 2, Allocated: 1, Available: 1},
				Claims: ClaimCounts{Allocated: 2},
			},
		},
		"access for administration consumes nothing": {
			world: world{
				nodes: a, slices: menu("80", whole, half("half-0"), half("half-1")),
				claims: []*Claim{aClaim("c", holds("a", "whole", asAdmin))},
			},
			query: PoolQuery{Devices: halves},
			want: PoolCounts{
				Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 2, Available: 2},
				Claims: ClaimCounts{AdminAccess: 1},
			},
		},
		"a counter below zero blocks whatever consumes any counter of the pool": {
			world: world{
				nodes: a,
				slices: menu("80",
					whole, half("half-0"), aDevice("plain"), aDevice("elsewhere", consumes("other", "1")),
				),
				claims: []*Claim{aClaim("c", holds("a", "whole")), aClaim("d", holds("a", "half-0"))},
			},
			query: PoolQuery{Devices: matcherOf("plain", "elsewhere")},
			want: PoolCounts{
				Nodes: oneNode, ResourcePools: onePool, Devices: unavailable(2, 0, 1, PartitionInUse),
				Claims: ClaimCounts{Allocated: 2},
			},
		},
		"counters used up come before an unready node": {
			world: world{
				nodes:  []*Node{aNode("a", notReady)},
				slices: menu("80", whole, half("half-0")),
				claims: []*Claim{aClaim("c", holds("a", "whole"))},
			},
			query: PoolQuery{Devices: halves},
			want: PoolCounts{
				Nodes: oneNode, ResourcePools: onePool, Devices: unavailable(1, 0, 0, PartitionInUse),
				Claims: ClaimCounts{Allocated: 1},
			},
		},
	})
}

func TestAliases(t *testing.T) {
	a := []*Node{aNode("a")}
	keys := CardKeys{Self: []string{"uuid", "resource.kubernetes.io/pciBusID"}, Parent: []string{"parentUUID"}}
	card := aDevice("card", attr("uuid", "X"), attr("resource.kubernetes.io/pciBusID", "41"))
	twin := aDevice("twin", attr("uuid", "Y"), attr("resource.kubernetes.io/pciBusID", "41"))
	part := func(name string) resourcev1.Device { return aDevice(name, attr("parentUUID", "X")) }
	allocated := []*Claim{aClaim("c", holds("a", "twin"))}
	check(t, map[string]rule{
		"a name in common makes an alias, whichever attribute has it": {
			world: world{nodes: a, slices: []*Slice{aSlice("a", devices(card, part("part-0")))}},
			query: PoolQuery{CardKeys: keys},
			want:  PoolCounts{Nodes: oneNode, ResourcePools: onePool},
		},
		"without keys nothing is an alias": {
			world: world{nodes: a, slices: []*Slice{aSlice("a", devices(card, twin))}, claims: allocated},
			want: PoolCounts{
				Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 2, Allocated: 1, Available: 1},
				Claims: ClaimCounts{Allocated: 1},
			},
		},
		"a card is unavailable while its twin is allocated": {
			world: world{nodes: a, slices: []*Slice{aSlice("a", devices(card, twin))}, claims: allocated},
			query: PoolQuery{CardKeys: keys, Devices: matcherOf("card")},
			want: PoolCounts{
				Nodes: oneNode, ResourcePools: onePool, Devices: unavailable(1, 0, 0, Aliased),
				Claims: ClaimCounts{Allocated: 1},
			},
		},
		"parts of one card are no aliases of each other": {
			world: world{
				nodes: a, slices: []*Slice{aSlice("a", devices(card, part("part-0"), part("part-1")))},
				claims: []*Claim{aClaim("c", holds("a", "part-0"))},
			},
			query: PoolQuery{CardKeys: keys, Devices: matcherOf("part-0", "part-1")},
			want: PoolCounts{
				Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 2, Allocated: 1, Available: 1},
				Claims: ClaimCounts{Allocated: 1},
			},
		},
		"devices that share counters are no aliases: counters are exact": {
			world: world{nodes: a, slices: []*Slice{
				aSlice("counters", pool("a", 1, 2), onNode("a"), counterSets(map[string]string{"card": "80"})),
				aSlice("a", pool("a", 1, 2), devices(
					aDevice("x", attr("uuid", "X"), consumes("card", "40")), aDevice("y", attr("uuid", "X"), consumes("card", "40")),
				)),
			}},
			query: PoolQuery{CardKeys: keys},
			want:  PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 2, Available: 2}},
		},
		"cards of one name in two resource pools are two": {
			world: world{nodes: a, slices: []*Slice{
				aSlice("a", devices(card)), aSlice("b", onNode("a"), devices(twin)),
			}},
			query: PoolQuery{CardKeys: keys},
			want: PoolCounts{
				Nodes: oneNode, ResourcePools: ResourcePoolCounts{Total: 2}, Devices: &DeviceCounts{Total: 2, Available: 2},
			},
		},
		"a bus address of two nodes in one resource pool is two cards": {
			world: world{nodes: []*Node{aNode("a"), aNode("b")}, slices: []*Slice{
				aSlice("a", pool("a", 1, 2), devices(card)), aSlice("b", pool("a", 1, 2), devices(twin)),
			}},
			query: PoolQuery{CardKeys: keys},
			want: PoolCounts{
				Nodes: NodeCounts{Selected: 2, Publishing: 2, WithDevices: 2}, ResourcePools: onePool,
				Devices: &DeviceCounts{Total: 2, Available: 2},
			},
		},
		"and so it is where each device of a slice has a node of its own": {
			world: world{nodes: []*Node{aNode("a"), aNode("b")}, slices: []*Slice{aSlice("a", perDevice, devices(
				aDevice("x", attr("uuid", "X"), reachedFrom("a")), aDevice("y", attr("uuid", "X"), reachedFrom("b")),
			))}},
			query: PoolQuery{CardKeys: keys},
			want: PoolCounts{
				Nodes: NodeCounts{Selected: 2, Publishing: 2, WithDevices: 2}, ResourcePools: onePool,
				Devices: &DeviceCounts{Total: 2, Available: 2},
			},
		},
		"an empty attribute names no card": {
			world: world{nodes: a, slices: []*Slice{aSlice("a", devices(aDevice("x", attr("uuid", "")), aDevice("y", attr("uuid", ""))))}},
			query: PoolQuery{CardKeys: keys},
			want:  PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 2, Available: 2}},
		},
		"counters used up come before an allocated alias": {
			world: world{
				nodes: a,
				slices: menu("80",
					aDevice("card", attr("uuid", "X"), consumes("card", "80")), aDevice("twin", attr("uuid", "X")), half("half-0"),
				),
				claims: []*Claim{aClaim("c", holds("a", "twin"), holds("a", "half-0"))},
			},
			query: PoolQuery{CardKeys: keys, Devices: matcherOf("card")},
			want: PoolCounts{
				Nodes: oneNode, ResourcePools: onePool, Devices: unavailable(1, 0, 0, PartitionInUse),
				Claims: ClaimCounts{Allocated: 1},
			},
		},
		"an allocated alias comes before an unready node": {
			world: world{
				nodes: []*Node{aNode("a", notReady)}, slices: []*Slice{aSlice("a", devices(card, twin))}, claims: allocated,
			},
			query: PoolQuery{CardKeys: keys, Devices: matcherOf("card")},
			want: PoolCounts{
				Nodes: oneNode, ResourcePools: onePool, Devices: unavailable(1, 0, 0, Aliased),
				Claims: ClaimCounts{Allocated: 1},
			},
		},
	})
}
