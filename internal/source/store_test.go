package source

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpupool/gpupool-operator/internal/inventory"
)

const (
	driver       = "gpu.example.com"
	class        = "whole.gpu.example.com"
	profileLabel = "gpupool.dev/profile"
)

func newNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// newSlice is a slice of a node that is complete and has so many devices.
func newSlice(node string, devices ...string) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node,
			Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for _, device := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: device})
	}
	return slice
}

func newClaim(name string) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, Labels: map[string]string{profileLabel: "train"}},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class}},
		}}},
	}
}

func newPod(name, claim string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name},
		Spec:       corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}},
	}
}

func newRule() *resourcev1.DeviceTaintRule {
	return &resourcev1.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: "r"},
		Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: new(driver)},
			Taint:          resourcev1.DeviceTaint{Key: "example.com/broken", Effect: resourcev1.DeviceTaintEffectNoSchedule},
		},
	}
}

// storeTest is a store, and what it posted.
type storeTest struct {
	*store
	posted []inventory.Change
	proofs int
}

func newStoreTest(kind inventory.Kind, in *inventory.Inventory) *storeTest {
	test := &storeTest{}
	test.store = &store{
		kind: kind, decoder: decoder{profileLabel: profileLabel}, inventory: in,
		post:  func(change inventory.Change) { test.posted = append(test.posted, change) },
		alive: func() { test.proofs++ },
	}
	return test
}

// devices counts the devices of an inventory, or fails if it does not know them.
func devices(t *testing.T, in *inventory.Inventory) inventory.DeviceCounts {
	t.Helper()
	counts, known := in.PoolCounts(inventory.PoolQuery{Driver: driver, ClassName: class})
	if !known || counts.Devices == nil {
		t.Fatalf("devices are not known: %+v", counts)
	}
	return *counts.Devices
}

func emptyInventory() *inventory.Inventory {
	in := inventory.New()
	for _, kind := range []inventory.Kind{inventory.Slices, inventory.Claims, inventory.Pods, inventory.Nodes} {
		in.Replace(kind, nil)
	}
	return in
}

func TestStoreFeedsTheInventory(t *testing.T) {
	in := emptyInventory()
	in.Put(inventory.FromNode(newNode("a")))
	store := newStoreTest(inventory.Slices, in)
	touched := inventory.Change{Drivers: []string{driver}}
	for _, step := range []struct {
		does   string
		do     func() error
		change inventory.Change
		total  int
	}{
		{"add", func() error { return store.Add(newSlice("a", "gpu-0")) }, touched, 1},
		{"update", func() error { return store.Update(newSlice("a", "gpu-0", "gpu-1")) }, touched, 2},
		{"an update that says the same", func() error { return store.Update(newSlice("a", "gpu-0", "gpu-1")) }, inventory.Change{}, 2},
		{"delete", func() error { return store.Delete(newSlice("a")) }, touched, 0},
		{"replace by a list of API objects", func() error { return store.Replace([]any{newSlice("a", "gpu-0")}, "1") }, touched, 1},
		{"replace by a page of compact forms", func() error {
			return store.Replace([]any{&listItem{object: inventory.FromSlice(newSlice("a", "gpu-0", "gpu-1"))}}, "2")
		}, touched, 2},
		{"replace by what the transformer made", func() error {
			compact, err := store.Transformer()(newSlice("a", "gpu-0"))
			if err != nil {
				return err
			}
			return store.Replace([]any{compact}, "3")
		}, touched, 1},
		{"resync", store.Resync, touched, 1},
		{"clear", func() error { store.clear(); return nil }, touched, 0},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.does, err)
		}
		if diff := cmp.Diff(step.change, store.posted[len(store.posted)-1]); diff != "" {
			t.Errorf("%s: change (-want +got):\n%s", step.does, diff)
		}
		if got := devices(t, in).Total; got != step.total {
			t.Errorf("%s: %d devices, want %d", step.does, got, step.total)
		}
	}
}

func TestStoreDropsPodsThatWaitForNothing(t *testing.T) {
	in := emptyInventory()
	in.Put(inventory.FromClaim(newClaim("c"), profileLabel))
	store := newStoreTest(inventory.Pods, in)
	pending := func(want int) {
		t.Helper()
		if claims, _ := in.ProfileClaims("train"); claims.Pending != want {
			t.Errorf("%d claims are pending, want %d", claims.Pending, want)
		}
	}
	waiting, placed := newPod("p", "c"), newPod("p", "c")
	placed.Spec.NodeName = "a"
	if err := store.Add(waiting); err != nil {
		t.Fatal(err)
	}
	pending(1)
	if err := store.Update(placed); err != nil {
		t.Fatal(err)
	}
	pending(0)
	compact, err := store.Transformer()(placed)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Replace([]any{waiting, placed, compact}, "1"); err != nil {
		t.Fatal(err)
	}
	pending(1)
}

func TestStoreRefusesOtherKinds(t *testing.T) {
	store := newStoreTest(inventory.Slices, emptyInventory())
	if err := store.Add(&corev1.Secret{}); err == nil {
		t.Error("a Secret was added")
	}
	if err := store.Replace([]any{&corev1.Secret{}}, "1"); err == nil {
		t.Error("a list of Secrets was taken")
	}
	if err := store.Delete("a"); err == nil {
		t.Error("a string was deleted")
	}
	if len(store.posted) > 0 {
		t.Errorf("changes were posted: %+v", store.posted)
	}
}

// Listing may be allowed and watching not: only what a watch brings proves that it works.
func TestStoreTellsAWatchFromAList(t *testing.T) {
	store := newStoreTest(inventory.Slices, emptyInventory())
	if err := store.Replace(nil, "1"); err != nil || store.proofs != 0 {
		t.Errorf("a list is a proof: %d, error %v", store.proofs, err)
	}
	if err := store.Bookmark("2"); err != nil || store.proofs != 1 {
		t.Errorf("a bookmark is no proof: %d, error %v", store.proofs, err)
	}
	if err := store.Add(newSlice("a")); err != nil || store.proofs != 2 {
		t.Errorf("an event is no proof: %d, error %v", store.proofs, err)
	}
}
