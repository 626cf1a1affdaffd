package inventory

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random worlds; 0 takes a new one")

const otherDriver, otherClass = "other.example.com", "other.other.example.com"

// dice makes random objects of a small world, in which everything meets everything.
type dice struct {
	*rand.Rand
}

func newDice(t *testing.T) dice {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed=%d", seed)
	return dice{rand.New(rand.NewPCG(seed, 0))}
}

func (d dice) oneOf(names ...string) string { return names[d.IntN(len(names))] }

// once in n is true.
func (d dice) once(in int) bool { return d.IntN(in) == 0 }

func (d dice) driver() string { return d.oneOf(testDriver, testDriver, otherDriver) }
func (d dice) pool() string   { return d.oneOf("a", "b", "c") }
func (d dice) class() string  { return d.oneOf(testClass, testClass, otherClass) }
func (d dice) device() string { return d.oneOf("gpu-0", "gpu-1", "gpu-2", "gpu-3") }
func (d dice) claim() string  { return d.oneOf("c0", "c1", "c2", "c3", "c4", "c5") }
func (d dice) podName() string {
	return d.oneOf("p0", "p1", "p2", "p3")
}

func (d dice) object(kind Kind) Object {
	switch kind {
	case Slices:
		return FromSlice(d.slice())
	case Claims:
		return d.resourceClaim()
	case Pods:
		return d.pod()
	case Nodes:
		return FromNode(d.node(d.pool()))
	default:
		return d.taintRule()
	}
}

func (d dice) node(name string) *corev1.Node {
	return apiNode(name, func(n *corev1.Node) {
		n.Labels = map[string]string{"rack": d.oneOf("1", "2")}
		n.Spec.Unschedulable = d.once(4)
		if d.once(4) {
			notReady(n)
		}
	})
}

func (d dice) slice() *resourcev1.ResourceSlice {
	return apiSlice(d.oneOf("s0", "s1", "s2", "s3", "s4", "s5"), func(s *resourcev1.ResourceSlice) {
		s.Spec.Driver = d.driver()
		s.Spec.Pool = resourcev1.ResourcePool{
			Name: d.pool(), Generation: int64(1 + d.IntN(2)), ResourceSliceCount: int64(1 + d.IntN(4)/3),
		}
		onNode(d.pool())(s)
		switch d.IntN(8) {
		case 0:
			onAllNodes(s)
		case 1:
			onNodesLabelled("rack", d.oneOf("1", "2"))(s)
		case 2:
			perDevice(s)
		case 3:
			inAnUnknownWay(s)
		}
		for _, i := range d.Perm(4)[:d.IntN(5)] {
			s.Spec.Devices = append(s.Spec.Devices, aDevice(fmt.Sprintf("gpu-%d", i), d.changeDevice))
		}
		if d.once(2) {
			counterSets(map[string]string{"card-0": d.oneOf("40", "80"), "card-1": "80"})(s)
		}
	})
}

func (d dice) changeDevice(device *resourcev1.Device) {
	attr("uuid", d.oneOf("X", "Y", "Z", ""))(device)
	attr("model", d.oneOf("big", "small", "fails"))(device)
	if d.once(3) {
		attr("parentUUID", d.oneOf("X", "Y"))(device)
	}
	if d.once(3) {
		consumes(d.oneOf("card-0", "card-1"), d.oneOf("20", "40", "80"))(device)
	}
	if d.once(5) {
		tainted(resourcev1.DeviceTaintEffect(d.oneOf("None", "NoSchedule", "NoExecute")))(device)
	}
	device.AllowMultipleAllocations = new(d.once(3))
	reachedFrom(d.pool())(device)
}

func (d dice) resourceClaim() *Claim {
	return aClaim(d.claim(), func(c *resourcev1.ResourceClaim) {
		requests(exactly("gpu", d.class()))(c)
		if d.once(3) {
			requests(resourcev1.DeviceRequest{Name: "gpu", FirstAvailable: []resourcev1.DeviceSubRequest{
				{Name: "big", DeviceClassName: d.class()}, {Name: "small", DeviceClassName: d.class()},
			}})(c)
		}
		for range d.IntN(3) {
			holds(d.pool(), d.device(), func(r *resourcev1.DeviceRequestAllocationResult) {
				r.Driver, r.Request = d.driver(), d.oneOf("gpu", "gpu/big", "gpu/small")
				r.AdminAccess = new(d.once(5))
			})(c)
		}
		if d.once(2) {
			ofProfile(d.oneOf("train", "infer"))(c)
		}
		if d.once(2) {
			ownedByPod(d.podName())(c)
		}
		if d.once(6) {
			claimDeleting(c)
		}
	})
}

func (d dice) pod() *Pod {
	return aPod(d.podName(), func(p *corev1.Pod) {
		for range d.IntN(3) {
			if d.once(2) {
				namesClaim(d.claim())(p)
			} else {
				hasClaimMade(d.claim())(p)
			}
		}
		if d.once(6) {
			podDeleting(p)
		}
	})
}

func (d dice) taintRule() *TaintRule {
	optional := func(name string) *string {
		if d.once(2) {
			return nil
		}
		return &name
	}
	var selector *resourcev1.DeviceTaintSelector
	if !d.once(5) {
		selector = &resourcev1.DeviceTaintSelector{
			Driver: optional(d.driver()), Pool: optional(d.pool()), Device: optional(d.device()),
		}
	}
	return aRule(d.oneOf("r0", "r1"), resourcev1.DeviceTaintEffect(d.oneOf("None", "NoSchedule", "NoExecute")), selector)
}

// answers are what a world is asked: pools that differ in all that a query can say, and profiles.
type answers struct {
	pools    []PoolCounts
	profiles []ClaimCounts
}

var profiles = []string{"train", "infer"}

func queries(t *testing.T) []PoolQuery {
	t.Helper()
	rackOne, err := NewNodeMatcher(labelTerms("rack", "1"))
	if err != nil {
		t.Fatal(err)
	}
	keys := CardKeys{Self: []string{"uuid"}, Parent: []string{"parentUUID"}}
	return []PoolQuery{
		{Driver: testDriver, ClassName: testClass},
		{Driver: testDriver, ClassName: otherClass, CardKeys: keys},
		{Driver: testDriver, ClassName: testClass, Nodes: rackOne, Devices: modelMatcher("big"), CardKeys: keys},
		{Driver: testDriver, ClassName: testClass, Devices: matcherOf("gpu-0", "gpu-1")},
		{Driver: testDriver, ClassName: testClass, Devices: matcherOf("gpu-2"), CardKeys: keys},
		{Driver: otherDriver, ClassName: otherClass},
	}
}

// modelMatcher selects devices of a model, and fails on those whose model is "fails".
type modelMatcher string

func (m modelMatcher) Judge(driver string, device *Device) Verdict {
	model, _ := device.attribute(driver, "model")
	if model.text == "fails" {
		return Verdict{Failure: "no such key"}
	}
	if model.text != string(m) {
		return Verdict{Value: model.text}
	}
	return Verdict{Matches: true}
}

func (in *Inventory) answers(t *testing.T, queries []PoolQuery) answers {
	t.Helper()
	var a answers
	for _, query := range queries {
		counts, known := in.PoolCounts(query)
		if !known {
			t.Fatal("the inventory is not synced")
		}
		a.pools = append(a.pools, counts)
	}
	for _, profile := range profiles {
		counts, _ := in.ProfileClaims(profile)
		a.profiles = append(a.profiles, counts)
	}
	return a
}

// step does something at random to an inventory and to a plain record of what it then holds.
func (d dice) step(in *Inventory, record *[kinds]map[types.NamespacedName]Object) (string, Change) {
	kind := Kind(d.IntN(int(kinds)))
	object := d.object(kind)
	key := object.Key()
	switch {
	case d.once(20):
		old := record[kind]
		record[kind] = map[types.NamespacedName]Object{key: object}
		for key, object := range old {
			if !d.once(4) {
				record[kind][key] = object
			}
		}
		return fmt.Sprintf("replace %s", kind), in.Replace(kind, d.shuffled(record[kind]))
	case d.once(3):
		delete(record[kind], key)
		return fmt.Sprintf("delete %s %s", kind, key), in.Delete(kind, key)
	default:
		record[kind][key] = object
		return fmt.Sprintf("put %s %s", kind, key), in.Put(object)
	}
}

func (d dice) shuffled(objects map[types.NamespacedName]Object) []Object {
	var list []Object
	for _, object := range objects {
		list = append(list, object)
	}
	d.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func newRecord() *[kinds]map[types.NamespacedName]Object {
	var record [kinds]map[types.NamespacedName]Object
	for kind := range record {
		record[kind] = map[types.NamespacedName]Object{}
	}
	return &record
}

// A Change names every answer that differs, whatever happens in whatever order.
func TestChangeNamesWhatDiffers(t *testing.T) {
	d, queries := newDice(t), queries(t)
	in, record := synced(), newRecord()
	before := in.answers(t, queries)
	for range 4000 {
		does, change := d.step(in, record)
		after := in.answers(t, queries)
		for i, query := range queries {
			if change.TouchesPool(query.Driver, query.ClassName) {
				continue
			}
			if diff := cmp.Diff(before.pools[i], after.pools[i]); diff != "" {
				t.Fatalf("%s changes %+v, but counts of query %d differ (-before +after):\n%s", does, change, i, diff)
			}
		}
		for i, profile := range profiles {
			if !change.TouchesProfile(profile) && before.profiles[i] != after.profiles[i] {
				t.Fatalf("%s changes %+v, but profile %s was %+v and is %+v", does, change, profile, before.profiles[i], after.profiles[i])
			}
		}
		before = after
	}
}

// Any history ends in the counts of an inventory that was filled at once.
func TestHistoryDoesNotMatter(t *testing.T) {
	d, queries := newDice(t), queries(t)
	for range 40 {
		in, record := synced(), newRecord()
		for range 100 {
			d.step(in, record)
		}
		fresh := New()
		for _, kind := range []Kind{Nodes, TaintRules, Pods, Claims, Slices} {
			fresh.Replace(kind, d.shuffled(record[kind]))
		}
		if diff := cmp.Diff(fresh.answers(t, queries), in.answers(t, queries), cmp.AllowUnexported(answers{})); diff != "" {
			t.Fatalf("answers (-filled at once +after a history):\n%s", diff)
		}
		for kind := range record {
			for _, object := range record[kind] {
				if change := in.Put(object); !change.IsZero() {
					t.Fatalf("putting %s %s again changes %+v", Kind(kind), object.Key(), change)
				}
			}
		}
	}
}

// The order of the lists does not matter, the sums hold and nothing is negative.
func TestCountsAreSound(t *testing.T) {
	d, queries := newDice(t), queries(t)
	seen := map[string]int{}
	for range 3000 {
		in, record := synced(), newRecord()
		for range 60 {
			d.step(in, record)
		}
		w, _ := in.world()
		for i, query := range queries {
			counts := recountPool(w, query)
			if diff := cmp.Diff(counts, recountPool(d.shuffledWorld(w), query)); diff != "" {
				t.Fatalf("query %d in another order (-want +got):\n%s", i, diff)
			}
			checkSound(t, counts)
			tally(seen, counts)
		}
	}
	for _, what := range []string{
		"devices", "no devices", "orphaned", "out of scope", "selector errors", "elsewhere", "admin", "pending",
		string(Tainted), string(PartitionInUse), string(Aliased), string(NodeUnschedulable),
		string(FewerSlices), string(MoreSlices), string(CountsDisagree),
		string(DuplicateDevice), string(DuplicateCounterSet), string(UnknownCounter),
	} {
		if seen[what] == 0 {
			t.Errorf("no world showed %s: the test shows nothing about it", what)
		}
	}
}

func (d dice) shuffledWorld(w world) world {
	s := world{
		slices: slices.Clone(w.slices), claims: slices.Clone(w.claims), pods: slices.Clone(w.pods),
		nodes: slices.Clone(w.nodes), taintRules: slices.Clone(w.taintRules),
	}
	d.Shuffle(len(s.slices), func(i, j int) { s.slices[i], s.slices[j] = s.slices[j], s.slices[i] })
	d.Shuffle(len(s.claims), func(i, j int) { s.claims[i], s.claims[j] = s.claims[j], s.claims[i] })
	d.Shuffle(len(s.pods), func(i, j int) { s.pods[i], s.pods[j] = s.pods[j], s.pods[i] })
	d.Shuffle(len(s.nodes), func(i, j int) { s.nodes[i], s.nodes[j] = s.nodes[j], s.nodes[i] })
	d.Shuffle(len(s.taintRules), func(i, j int) { s.taintRules[i], s.taintRules[j] = s.taintRules[j], s.taintRules[i] })
	return s
}

func checkSound(t *testing.T, counts PoolCounts) {
	t.Helper()
	sumOf := func(reasons map[UnavailableReason]int) (sum int) {
		for _, n := range reasons {
			sum += n
		}
		return sum
	}
	incomplete := 0
	for _, n := range counts.ResourcePools.IncompleteReasons {
		incomplete += n
	}
	nodes, pools := counts.Nodes, counts.ResourcePools
	sound := 0 <= nodes.WithDevices && nodes.WithDevices <= nodes.Publishing && nodes.Publishing <= nodes.Selected &&
		0 <= pools.Incomplete && pools.Incomplete <= pools.Total && pools.Incomplete == incomplete &&
		counts.OutOfScope >= 0 && counts.Orphaned >= 0 && counts.SelectorErrors >= 0
	if d := counts.Devices; d != nil {
		sound = sound && d.Total == d.Allocated+d.Available+d.Unavailable &&
			min(d.Allocated, d.Available, d.Unavailable) >= 0 &&
			0 <= d.AllocatedElsewhere && d.AllocatedElsewhere <= d.Allocated &&
			d.Unavailable == sumOf(d.UnavailableReasons)
	}
	if !sound {
		t.Fatalf("counts do not add up: %+v, devices %+v", counts, counts.Devices)
	}
}

func tally(seen map[string]int, counts PoolCounts) {
	if counts.Devices == nil {
		seen["no devices"]++
	} else {
		seen["devices"] += counts.Devices.Total
		seen["elsewhere"] += counts.Devices.AllocatedElsewhere
		for reason, n := range counts.Devices.UnavailableReasons {
			seen[string(reason)] += n
		}
	}
	seen["orphaned"] += counts.Orphaned
	seen["out of scope"] += counts.OutOfScope
	seen["selector errors"] += counts.SelectorErrors
	seen["admin"] += counts.Claims.AdminAccess
	seen["pending"] += counts.Claims.Pending
	for reason, n := range counts.ResourcePools.IncompleteReasons {
		seen[string(reason)] += n
	}
}
