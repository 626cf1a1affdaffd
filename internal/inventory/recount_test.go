package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	resourcev1 "k8s.io/api/resource/v1"
)

type rule struct {
	world world
	query PoolQuery
	want  PoolCounts
}

// check recounts each world of a table. Unless a rule says otherwise, it asks for all devices of the test driver, and
// takes no notice of what keeps others out.
func check(t *testing.T, rules map[string]rule) {
	t.Helper()
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			query := r.query
			query.Driver, query.ClassName = testDriver, testClass
			got := recountPool(r.world, query)
			if r.want.Excluded == nil {
				got.Excluded = nil
			}
			if diff := cmp.Diff(r.want, got); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

func unavailable(total, allocated, available int, reason UnavailableReason) *DeviceCounts {
	n := total - allocated - available
	return &DeviceCounts{
		Total: total, Allocated: allocated, Available: available, Unavailable: n,
		UnavailableReasons: map[UnavailableReason]int{reason: n},
	}
}

var (
	oneNode = NodeCounts{Selected: 1, Publishing: 1, WithDevices: 1}
	onePool = ResourcePoolCounts{Total: 1}
)

func TestResourcePools(t *testing.T) {
	incomplete := func(reason IncompleteReason) PoolCounts {
		return PoolCounts{
			Nodes: NodeCounts{Selected: 1, Publishing: 1},
			ResourcePools: ResourcePoolCounts{
				Total: 1, Incomplete: 1, IncompleteReasons: map[IncompleteReason]int{reason: 1},
			},
			Devices: &DeviceCounts{},
		}
	}
	a := []*Node{aNode("a")}
	check(t, map[string]rule{
		"a slice that announces no slices is not complete": {
			world: world{nodes: a, slices: []*Slice{aSlice("a", pool("a", 1, 0), devices(aDevice("gpu-0")))}},
			want:  incomplete(MoreSlices),
		},
		"a device name twice makes the pool invalid, in two slices as in one": {
			world: world{nodes: a, slices: []*Slice{
				aSlice("a", pool("a", 1, 2), devices(aDevice("gpu-0"))),
				aSlice("b", pool("a", 1, 2), onNode("a"), devices(aDevice("gpu-0"))),
			}},
			want: incomplete(DuplicateDevice),
		},
		"a counter set twice makes the pool invalid": {
			world: world{nodes: a, slices: []*Slice{
				aSlice("a", pool("a", 1, 2), counterSets(map[string]string{"card": "1"})),
				aSlice("b", pool("a", 1, 2), onNode("a"), counterSets(map[string]string{"card": "1"})),
			}},
			want: incomplete(DuplicateCounterSet),
		},
		"a device that consumes of a set that is not there makes the pool invalid": {
			world: world{nodes: a, slices: []*Slice{aSlice("a", devices(aDevice("gpu-0", consumes("card", "1"))))}},
			want:  incomplete(UnknownCounter),
		},
		"a device that consumes of a counter that is not there makes the pool invalid": {
			world: world{nodes: a, slices: []*Slice{aSlice("a",
				func(s *resourcev1.ResourceSlice) {
					s.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "card"}}
				},
				devices(aDevice("gpu-0", consumes("card", "1"))))}},
			want: incomplete(UnknownCounter),
		},
		"an older generation is void however complete it is": {
			world: world{nodes: a, slices: []*Slice{
				aSlice("new", pool("a", 2, 2), onNode("a"), devices(aDevice("gpu-0"))),
				aSlice("old", pool("a", 1, 1), onNode("a"), devices(aDevice("gpu-0"), aDevice("gpu-1"))),
			}},
			want: incomplete(FewerSlices),
		},
		"pools of another driver are not looked at": {
			world: world{nodes: a, slices: []*Slice{aSlice("a",
				func(s *resourcev1.ResourceSlice) { s.Spec.Driver = "other.example.com" },
				devices(aDevice("gpu-0")))}},
			want: PoolCounts{Nodes: NodeCounts{Selected: 1}, Devices: &DeviceCounts{}},
		},
		"a pool that no selected node reaches is not counted": {
			world: world{nodes: a, slices: []*Slice{
				aSlice("a", devices(aDevice("gpu-0"))),
				aSlice("gone", pool("gone", 1, 2), devices(aDevice("gpu-0"))),
			}},
			want: PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 1, Available: 1}},
		},
		"a slice in a way that is not known counts for its pool, its devices do not": {
			world: world{nodes: a, slices: []*Slice{
				aSlice("a", pool("a", 1, 2), devices(aDevice("gpu-0"))),
				aSlice("b", pool("a", 1, 2), inAnUnknownWay, devices(aDevice("gpu-1"))),
			}},
			want: PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 1, Available: 1}},
		},
	})
}

func TestReach(t *testing.T) {
	inRackOne, err := NewNodeMatcher(labelTerms("rack", "1"))
	if err != nil {
		t.Fatal(err)
	}
	racks := []*Node{
		aNode("a", inRack("1")), aNode("b", inRack("1")), aNode("c", inRack("2")),
	}
	check(t, map[string]rule{
		"devices of every node, counted on the selected ones": {
			world: world{nodes: racks, slices: []*Slice{
				aSlice("a", devices(aDevice("gpu-0"))), aSlice("b"), aSlice("c", devices(aDevice("gpu-0"))),
			}},
			query: PoolQuery{Nodes: inRackOne},
			want: PoolCounts{
				Nodes:         NodeCounts{Selected: 2, Publishing: 2, WithDevices: 1},
				ResourcePools: ResourcePoolCounts{Total: 2},
				Devices:       &DeviceCounts{Total: 1, Available: 1},
				OutOfScope:    1,
			},
		},
		"a device of all nodes counts once": {
			world: world{nodes: racks, slices: []*Slice{aSlice("fabric", onAllNodes, devices(aDevice("gpu-0")))}},
			want: PoolCounts{
				Nodes: NodeCounts{Selected: 3, Publishing: 3, WithDevices: 3}, ResourcePools: onePool,
				Devices: &DeviceCounts{Total: 1, Available: 1},
			},
		},
		"a device of the nodes that a selector matches counts once": {
			world: world{nodes: racks, slices: []*Slice{
				aSlice("rack", onNodesLabelled("rack", "1"), devices(aDevice("gpu-0"), aDevice("gpu-1"))),
			}},
			want: PoolCounts{
				Nodes: NodeCounts{Selected: 3, Publishing: 2, WithDevices: 2}, ResourcePools: onePool,
				Devices: &DeviceCounts{Total: 2, Available: 2},
			},
		},
		"each device of a slice may have nodes of its own": {
			world: world{nodes: racks, slices: []*Slice{aSlice("rack", perDevice, devices(
				aDevice("gpu-0", reachedFrom("a")), aDevice("gpu-1", reachedFrom("c")), aDevice("gpu-2"),
				aDevice("gpu-3", func(d *resourcev1.Device) { d.NodeSelector = nodeSelector("rack", "1") }),
				aDevice("gpu-4", func(d *resourcev1.Device) { d.AllNodes = new(true) }),
			))}},
			query: PoolQuery{Nodes: inRackOne},
			want: PoolCounts{
				Nodes:         NodeCounts{Selected: 2, Publishing: 2, WithDevices: 2},
				ResourcePools: onePool,
				Devices:       &DeviceCounts{Total: 3, Available: 3},
				OutOfScope:    1,
			},
		},
		"a selector that does not parse reaches nothing": {
			world: world{nodes: racks, slices: []*Slice{aSlice("rack",
				onNodesLabelled("rack", "1"),
				func(s *resourcev1.ResourceSlice) {
					s.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Near"
				},
				devices(aDevice("gpu-0")))}},
			want: PoolCounts{Nodes: NodeCounts{Selected: 3}, Devices: &DeviceCounts{}},
		},
		"a device that only unready and cordoned nodes reach is unavailable": {
			world: world{
				nodes: []*Node{aNode("a", notReady), aNode("b", cordoned), aNode("c", cordoned), aNode("d")},
				slices: []*Slice{
					aSlice("a", devices(aDevice("gpu-0"))), aSlice("b", devices(aDevice("gpu-0"))),
					aSlice("c", devices(aDevice("gpu-0"))), aSlice("d", devices(aDevice("gpu-0"))),
				},
				claims: []*Claim{aClaim("c", holds("c", "gpu-0"))},
			},
			want: PoolCounts{
				Nodes:         NodeCounts{Selected: 4, Publishing: 4, WithDevices: 4},
				ResourcePools: ResourcePoolCounts{Total: 4},
				Devices:       unavailable(4, 1, 1, NodeUnschedulable),
				Claims:        ClaimCounts{Allocated: 1},
			},
		},
		"a node that is not selected may make a device available": {
			world: world{
				nodes:  []*Node{aNode("a", inRack("1"), cordoned), aNode("c", inRack("2"))},
				slices: []*Slice{aSlice("fabric", onAllNodes, devices(aDevice("gpu-0")))},
			},
			query: PoolQuery{Nodes: inRackOne},
			want:  PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 1, Available: 1}},
		},
	})
}

func TestTaints(t *testing.T) {
	four := []*Slice{aSlice("a", devices(aDevice("gpu-0"), aDevice("gpu-1"), aDevice("gpu-2"), aDevice("gpu-3")))}
	byRule := func(effect resourcev1.DeviceTaintEffect, selector *resourcev1.DeviceTaintSelector, want *DeviceCounts) rule {
		return rule{
			world: world{nodes: []*Node{aNode("a")}, slices: four, taintRules: []*TaintRule{aRule("r", effect, selector)}},
			want:  PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: want},
		}
	}
	const noSchedule = resourcev1.DeviceTaintEffectNoSchedule
	all, none := unavailable(4, 0, 0, Tainted), &DeviceCounts{Total: 4, Available: 4}
	check(t, map[string]rule{
		"effects that are None or not known inform": {
			world: world{nodes: []*Node{aNode("a")}, slices: []*Slice{aSlice("a", devices(
				aDevice("gpu-0", tainted(resourcev1.DeviceTaintEffectNone)), aDevice("gpu-1", tainted("Repel")),
				aDevice("gpu-2", tainted(noSchedule)), aDevice("gpu-3", tainted(resourcev1.DeviceTaintEffectNoExecute)),
			))}},
			want: PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: unavailable(4, 0, 2, Tainted)},
		},
		"a rule without a selector matches nothing":     byRule(noSchedule, nil, none),
		"a rule with an empty selector matches all":     byRule(noSchedule, &resourcev1.DeviceTaintSelector{}, all),
		"a rule for the driver matches all":             byRule(noSchedule, &resourcev1.DeviceTaintSelector{Driver: new(testDriver)}, all),
		"a rule for another driver matches nothing":     byRule(noSchedule, &resourcev1.DeviceTaintSelector{Driver: new("other")}, none),
		"a rule for another pool matches nothing":       byRule(noSchedule, &resourcev1.DeviceTaintSelector{Pool: new("b")}, none),
		"a rule for the pool matches its devices":       byRule(noSchedule, &resourcev1.DeviceTaintSelector{Pool: new("a")}, all),
		"a rule for a device matches it":                byRule(noSchedule, &resourcev1.DeviceTaintSelector{Device: new("gpu-1")}, unavailable(4, 0, 3, Tainted)),
		"a rule with effect None keeps nobody off":      byRule(resourcev1.DeviceTaintEffectNone, &resourcev1.DeviceTaintSelector{}, none),
		"a rule with effect NoExecute keeps claims off": byRule(resourcev1.DeviceTaintEffectNoExecute, &resourcev1.DeviceTaintSelector{}, all),
		"a taint comes before every other reason": {
			world: world{nodes: []*Node{aNode("a", cordoned)}, slices: []*Slice{
				aSlice("a", devices(aDevice("gpu-0", tainted(noSchedule)))),
			}},
			want: PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: unavailable(1, 0, 0, Tainted)},
		},
	})
}

// matcher selects devices by name, and fails on those whose name it maps to false.
type matcher map[string]bool

func matcherOf(names ...string) matcher {
	m := matcher{}
	for _, name := range names {
		m[name] = true
	}
	return m
}

func (m matcher) Judge(_ string, device *Device) Verdict {
	matches, known := m[device.Name.String()]
	if known && !matches {
		return Verdict{Failure: "no such key: type"}
	}
	return Verdict{Matches: matches, Value: device.Name.String()}
}

func TestSelectorErrors(t *testing.T) {
	check(t, map[string]rule{
		"a device on which the selector fails is not selected, in scope or out of it": {
			world: world{nodes: []*Node{aNode("a")}, slices: []*Slice{
				aSlice("a", devices(aDevice("fails"), aDevice("matches"), aDevice("differs"))),
				aSlice("gone", devices(aDevice("fails"), aDevice("matches"))),
				aSlice("incomplete", pool("incomplete", 1, 2), onNode("a"), devices(aDevice("fails"))),
			}},
			query: PoolQuery{Devices: matcher{"fails": false, "matches": true}},
			want: PoolCounts{
				Nodes: oneNode,
				ResourcePools: ResourcePoolCounts{
					Total: 2, Incomplete: 1, IncompleteReasons: map[IncompleteReason]int{FewerSlices: 1},
				},
				Devices:        &DeviceCounts{Total: 1, Available: 1},
				Excluded:       []Exclusion{{Failure: "no such key: type", Devices: 1}, {Value: "differs", Devices: 1}},
				OutOfScope:     1,
				SelectorErrors: 2,
			},
		},
	})
}

func TestExcludedAndModels(t *testing.T) {
	model := func(name string) func(*resourcev1.Device) { return attr("model", name) }
	fleet := world{
		nodes: []*Node{aNode("a")},
		slices: []*Slice{
			aSlice("a", devices(
				aDevice("h100-0", model("H100")), aDevice("h100-1", model("H100")), aDevice("h100-2", model("H100"), tainted("NoSchedule")),
				aDevice("a2", model("A2")), aDevice("nameless"), aDevice("strange", attr(testDriver+"/model", "T4"), model("H100")),
				aDevice("fails", model("fails")),
			)),
			aSlice("elsewhere", devices(aDevice("h100-0", model("H100")), aDevice("a2", model("A2")))),
			aSlice("half", pool("half", 1, 2), onNode("a"), devices(aDevice("h100", model("H100")))),
		},
		claims: []*Claim{aClaim("c", holds("a", "h100-1"))},
	}
	check(t, map[string]rule{
		"what keeps devices on selected nodes out is counted by value; what is elsewhere or incomplete is not": {
			world: fleet,
			query: PoolQuery{Devices: modelMatcher("H100"), Model: "model"},
			want: PoolCounts{
				Nodes: oneNode,
				ResourcePools: ResourcePoolCounts{
					Total: 2, Incomplete: 1, IncompleteReasons: map[IncompleteReason]int{FewerSlices: 1},
				},
				Devices: &DeviceCounts{
					Total: 3, Allocated: 1, Available: 1, Unavailable: 1, UnavailableReasons: map[UnavailableReason]int{Tainted: 1},
				},
				Models: []ModelCounts{{Name: "H100", Total: 3, Allocated: 1, Available: 1}},
				Excluded: []Exclusion{
					{Devices: 1}, {Failure: "no such key", Devices: 1}, {Value: "A2", Devices: 1}, {Value: "T4", Devices: 1},
				},
				OutOfScope: 1, SelectorErrors: 1,
				Claims: ClaimCounts{Allocated: 1},
			},
		},
		"models are counted where the sum of devices means something, and the qualified name wins": {
			world: fleet,
			query: PoolQuery{Model: "model"},
			want: PoolCounts{
				Nodes: oneNode,
				ResourcePools: ResourcePoolCounts{
					Total: 2, Incomplete: 1, IncompleteReasons: map[IncompleteReason]int{FewerSlices: 1},
				},
				Devices: &DeviceCounts{
					Total: 7, Allocated: 1, Available: 5, Unavailable: 1, UnavailableReasons: map[UnavailableReason]int{Tainted: 1},
				},
				Models: []ModelCounts{
					{Name: "A2", Total: 1, Available: 1},
					{Name: "H100", Total: 3, Allocated: 1, Available: 1},
					{Name: "T4", Total: 1, Available: 1},
					{Name: "fails", Total: 1, Available: 1},
				},
				OutOfScope: 2,
				Claims:     ClaimCounts{Allocated: 1},
			},
		},
	})
}
