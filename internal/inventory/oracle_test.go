package inventory

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// What is counted as available is what the scheduler's allocator hands out, device by device, and nothing else is.
//
// Card keys are left out: that an alias is not available is the one place where the counts say less than the allocator
// does. Resource pools that are incomplete are left out too: the allocator judges them node by node.
func TestAvailableIsWhatTheAllocatorHandsOut(t *testing.T) {
	d := newDice(t)
	available, refused := 0, 0
	for range 2500 {
		c := d.cluster()
		for _, pool := range resourcePools(c.world.slices, Intern(testDriver)) {
			if pool.incomplete != "" {
				continue
			}
			for _, slice := range pool.slices {
				for i := range slice.Devices {
					id, _ := slice.Devices[i].attribute(testDriver, "id")
					counts := recountPool(c.world, PoolQuery{
						Driver: testDriver, ClassName: testClass, Devices: idMatcher(id.text),
					})
					if counts.Devices != nil && counts.Devices.Allocated > 0 {
						continue
					}
					want := c.handsOut(t, id.text)
					got := counts.Devices != nil && counts.Devices.Available == 1
					if got != want {
						t.Fatalf("the allocator hands out device %s of slice %s: %v; counts %+v, devices %+v",
							slice.Devices[i].Name, slice.Name, want, counts, counts.Devices)
					}
					if want {
						available++
					} else {
						refused++
					}
				}
			}
		}
	}
	if available < 200 || refused < 200 {
		t.Errorf("%d devices were handed out and %d refused: too few to show anything", available, refused)
	}
}

// idMatcher selects the one device that has an id.
type idMatcher string

func (m idMatcher) Judge(driver string, device *Device) Verdict {
	id, _ := device.attribute(driver, "id")
	return Verdict{Matches: id.text == string(m)}
}

// cluster is a random world, in compact form and as the allocator takes it.
type cluster struct {
	world  world
	nodes  []*corev1.Node
	slices []*resourcev1.ResourceSlice
	state  structured.AllocatedState
	cache  *cel.Cache
}

func (d dice) cluster() *cluster {
	c := &cluster{
		cache: cel.NewCache(100, cel.Features{EnableConsumableCapacity: true}),
		state: structured.AllocatedState{
			AllocatedDevices:         sets.New[structured.DeviceID](),
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		},
	}
	for _, name := range []string{"a", "b", "c"} {
		node := d.node(name)
		c.nodes = append(c.nodes, node)
		c.world.nodes = append(c.world.nodes, FromNode(node))
	}
	names := sets.New[string]()
	for range 8 {
		slice := d.slice()
		if names.Has(slice.Name) {
			continue
		}
		names.Insert(slice.Name)
		c.addSlice(slice)
	}
	for i := range d.IntN(5) {
		claim := d.resourceClaim()
		claim.Name = fmt.Sprintf("c%d", i)
		c.addClaim(claim)
	}
	if d.once(2) {
		c.addRule(d.taintRule())
	}
	return c
}

// addSlice adds a slice as the API server accepts it, with counters or devices, and an id on each device.
func (c *cluster) addSlice(slice *resourcev1.ResourceSlice) {
	if len(slice.Spec.SharedCounters) > 0 {
		slice.Spec.Devices = nil
	}
	for i := range slice.Spec.Devices {
		device := &slice.Spec.Devices[i]
		attr("id", slice.Name+"/"+device.Name)(device)
		if slice.Spec.PerDeviceNodeSelection == nil {
			device.NodeName = nil
		}
	}
	c.slices = append(c.slices, slice)
	c.world.slices = append(c.world.slices, FromSlice(slice))
}

// addClaim adds what a claim holds to the allocator's state, as the scheduler does.
func (c *cluster) addClaim(claim *Claim) {
	c.world.claims = append(c.world.claims, claim)
	for _, r := range claim.Results {
		if !r.AdminAccess {
			id := structured.MakeDeviceID(r.Driver.String(), r.Pool.String(), r.Device.String())
			c.state.AllocatedDevices.Insert(id)
		}
	}
}

// addRule adds the taint of a rule to the slices that the allocator sees, as the scheduler's slice tracker does.
func (c *cluster) addRule(rule *TaintRule) {
	c.world.taintRules = append(c.world.taintRules, rule)
	for _, slice := range c.slices {
		if !rule.matchesPool(Intern(slice.Spec.Driver), Intern(slice.Spec.Pool.Name)) {
			continue
		}
		for i := range slice.Spec.Devices {
			if device := &slice.Spec.Devices[i]; rule.matchesDevice(Intern(device.Name)) {
				tainted(resourcev1.DeviceTaintEffect(rule.Taint.Effect.String()))(device)
			}
		}
	}
}

// handsOut says whether the allocator gives a device to a claim on any node that takes pods.
func (c *cluster) handsOut(t *testing.T, id string) bool {
	t.Helper()
	claim := &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: testClass,
			AllocationMode:  resourcev1.DeviceAllocationModeExactCount,
			Count:           1,
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: fmt.Sprintf(`device.attributes[%q].?id.orValue("") == %q`, testDriver, id),
			}}},
		}}},
	}}}
	features := structured.Features{
		AdminAccess: true, ConsumableCapacity: true, DeviceTaints: true, PartitionableDevices: true, PrioritizedList: true,
	}
	for _, node := range c.nodes {
		if !FromNode(node).takesPods() {
			continue
		}
		allocator, err := structured.NewAllocator(t.Context(), features, c.state, oneClass{}, c.slices, c.cache)
		if err != nil {
			t.Fatal(err)
		}
		results, err := allocator.Allocate(t.Context(), node, []*resourcev1.ResourceClaim{claim})
		if err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode) {
			t.Fatalf("allocating on node %s: %v", node.Name, err)
		}
		if err == nil && len(results) > 0 {
			return true
		}
	}
	return false
}

// oneClass is a lister of the test class, which selects everything.
type oneClass struct{}

func (oneClass) List() ([]*resourcev1.DeviceClass, error) {
	class, _ := oneClass{}.Get(testClass)
	return []*resourcev1.DeviceClass{class}, nil
}

func (oneClass) Get(name string) (*resourcev1.DeviceClass, error) {
	class := &resourcev1.DeviceClass{}
	class.Name = name
	return class, nil
}
