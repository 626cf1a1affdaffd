package inventory

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// synced makes an inventory that has seen a whole cluster, which holds these objects.
func synced(objects ...Object) *Inventory {
	in := New()
	for kind := range kinds {
		in.Replace(kind, objects)
	}
	return in
}

func TestPutChanges(t *testing.T) {
	slice := func(s *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
		s.Spec.Driver, s.Spec.NodeName = testDriver, new("a")
		s.Spec.Pool.ResourceSliceCount = 1
		return s
	}
	const noSchedule = resourcev1.DeviceTaintEffectNoSchedule
	everything := Change{Everything: true}
	for name, test := range map[string]struct {
		before []Object
		put    Object
		want   Change
	}{
		"a new slice touches its driver": {
			put: aSlice("a"), want: Change{Drivers: []string{testDriver}},
		},
		"a slice that says the same touches nothing": {
			before: []Object{FromSlice(slice(&resourcev1.ResourceSlice{}))},
			put:    FromSlice(slice(&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2", Labels: map[string]string{"x": "y"}}})),
		},
		"a slice that passes to another driver touches both": {
			before: []Object{aSlice("a", func(s *resourcev1.ResourceSlice) { s.Spec.Driver = "other.example.com" })},
			put:    aSlice("a"), want: Change{Drivers: []string{testDriver, "other.example.com"}},
		},
		"a new claim touches its classes and its profile": {
			put:  aClaim("c", ofProfile("train"), requests(exactly("gpu", testClass), exactly("nic", "nic.example.com"))),
			want: Change{Classes: []string{"nic.example.com", testClass}, Profiles: []string{"train"}},
		},
		"an allocated claim touches its drivers too": {
			put: aClaim("c", holds("a", "gpu-0")), want: Change{Drivers: []string{testDriver}, Classes: []string{testClass}},
		},
		"a claim that changes its profile touches both": {
			before: []Object{aClaim("c", ofProfile("train"))},
			put:    aClaim("c", ofProfile("infer")),
			want:   Change{Classes: []string{testClass}, Profiles: []string{"infer", "train"}},
		},
		"a claim with another label and condition touches nothing": {
			before: []Object{aClaim("c", holds("a", "gpu-0"))},
			put: aClaim("c", holds("a", "gpu-0"), func(c *resourcev1.ResourceClaim) {
				c.Labels = map[string]string{"x": "y"}
				c.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: testDriver, Pool: "a", Device: "gpu-0"}}
			}),
		},
		"a node's heartbeat touches nothing": {
			before: []Object{aNode("a")},
			put: aNode("a", func(n *corev1.Node) {
				n.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
				n.Status.Images = []corev1.ContainerImage{{Names: []string{"x"}}}
			}),
		},
		"a node that is cordoned touches everything": {
			before: []Object{aNode("a")}, put: aNode("a", cordoned), want: everything,
		},
		"a node's label touches everything": {
			before: []Object{aNode("a")}, put: aNode("a", inRack("1")), want: everything,
		},
		"a pod touches the claims that it names": {
			before: []Object{aClaim("c", ofProfile("train")), aClaim("d", requests(exactly("gpu", "other")))},
			put:    aPod("p", namesClaim("c"), namesClaim("gone")),
			want:   Change{Classes: []string{testClass}, Profiles: []string{"train"}},
		},
		"a pod without claims touches nothing": {put: aPod("p")},
		"a rule touches its driver": {
			put:  aRule("r", noSchedule, &resourcev1.DeviceTaintSelector{Driver: new(testDriver)}),
			want: Change{Drivers: []string{testDriver}},
		},
		"a rule for all drivers touches everything": {
			put: aRule("r", noSchedule, &resourcev1.DeviceTaintSelector{Pool: new("a")}), want: everything,
		},
		"a rule that matches nothing touches nothing": {put: aRule("r", noSchedule, nil)},
		"a rule that narrows touches what it matched before": {
			before: []Object{aRule("r", noSchedule, &resourcev1.DeviceTaintSelector{Driver: new(testDriver)})},
			put:    aRule("r", noSchedule, nil), want: Change{Drivers: []string{testDriver}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := synced(test.before...)
			if diff := cmp.Diff(test.want, in.Put(test.put)); diff != "" {
				t.Errorf("change (-want +got):\n%s", diff)
			}
			if again := in.Put(test.put); !again.IsZero() {
				t.Errorf("putting the same again changes %+v", again)
			}
		})
	}
}

func TestDeleteChanges(t *testing.T) {
	in := synced(aSlice("a"), aClaim("c"), aPod("p", namesClaim("c")))
	for name, test := range map[string]struct {
		kind Kind
		key  types.NamespacedName
		want Change
	}{
		"an object that is there touches what it touched": {
			Slices, types.NamespacedName{Name: "a"}, Change{Drivers: []string{testDriver}},
		},
		"a pod touches the claims that waited for it": {
			Pods, types.NamespacedName{Namespace: "team-a", Name: "p"}, Change{Classes: []string{testClass}},
		},
		"an object that is not there touches nothing": {Nodes, types.NamespacedName{Name: "a"}, Change{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, in.Delete(test.kind, test.key)); diff != "" {
				t.Errorf("change (-want +got):\n%s", diff)
			}
			if again := in.Delete(test.kind, test.key); !again.IsZero() {
				t.Errorf("deleting it again changes %+v", again)
			}
		})
	}
}

func TestReplaceChangesWhatDiffers(t *testing.T) {
	other := aSlice("b", func(s *resourcev1.ResourceSlice) { s.Spec.Driver = "other.example.com" })
	in := synced(aSlice("a"), other, aNode("a"))
	for _, step := range []struct {
		does    string
		objects []Object
		want    Change
	}{
		{"the same list changes nothing", []Object{aSlice("a"), other}, Change{}},
		{"what is missing is touched", []Object{aSlice("a")}, Change{Drivers: []string{"other.example.com"}}},
		{"what is new is touched", []Object{aSlice("a"), other}, Change{Drivers: []string{"other.example.com"}}},
		{"what differs is touched", []Object{aSlice("a", devices(aDevice("gpu-0"))), other}, Change{Drivers: []string{testDriver}}},
		{"objects of other kinds are ignored", []Object{aSlice("a", devices(aDevice("gpu-0"))), other, aNode("b")}, Change{}},
	} {
		if diff := cmp.Diff(step.want, in.Replace(Slices, step.objects)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.does, diff)
		}
	}
}

func TestNothingIsKnownBeforeTheWholeClusterIs(t *testing.T) {
	in := New()
	in.Require(TaintRules)
	query := PoolQuery{Driver: testDriver, ClassName: testClass}
	for kind := range kinds {
		if _, known := in.PoolCounts(query); known || in.Synced() {
			t.Fatalf("counts are known before %s are", kind)
		}
		if _, known := in.ProfileClaims("train"); known {
			t.Fatalf("claims are counted before %s are known", kind)
		}
		if change := in.Put(aNode("a")); !change.IsZero() {
			t.Errorf("putting a node changes answers that are not known: %+v", change)
		}
		change := in.Replace(kind, []Object{aSlice("a", devices(aDevice("gpu-0"))), aNode("a")})
		if diff := cmp.Diff(Change{Everything: kind == kinds-1}, change); diff != "" {
			t.Errorf("change by the list of %s (-want +got):\n%s", kind, diff)
		}
	}
	counts, known := in.PoolCounts(query)
	want := PoolCounts{Nodes: oneNode, ResourcePools: onePool, Devices: &DeviceCounts{Total: 1, Available: 1}}
	if diff := cmp.Diff(want, counts); diff != "" || !known {
		t.Errorf("known %v, counts (-want +got):\n%s", known, diff)
	}
}

func TestTaintRulesAreRequiredOnlyWhereServed(t *testing.T) {
	in := New()
	for _, kind := range []Kind{Slices, Claims, Pods, Nodes} {
		in.Replace(kind, nil)
	}
	if !in.Synced() {
		t.Error("an inventory of a cluster without DeviceTaintRules is not synced")
	}
}

func TestUnion(t *testing.T) {
	a := Change{Drivers: []string{"a", "c"}, Classes: []string{"x"}}
	b := Change{Drivers: []string{"b", "c"}, Profiles: []string{"p"}}
	want := Change{Drivers: []string{"a", "b", "c"}, Classes: []string{"x"}, Profiles: []string{"p"}}
	if diff := cmp.Diff(want, a.Union(b)); diff != "" {
		t.Errorf("union (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(a, a.Union(Change{})); diff != "" {
		t.Errorf("union with nothing (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Change{Everything: true}, a.Union(Change{Everything: true})); diff != "" {
		t.Errorf("union with everything (-want +got):\n%s", diff)
	}
}

// The race detector finds what is not safe here.
func TestConcurrentUse(t *testing.T) {
	in, d := synced(), newDice(t)
	objects := make([]Object, 200)
	for i := range objects {
		objects[i] = d.object(Kind(i % int(kinds)))
	}
	var running sync.WaitGroup
	for worker := range 4 {
		running.Go(func() {
			for i, object := range objects {
				switch (i + worker) % 4 {
				case 0:
					in.Put(object)
				case 1:
					in.Delete(object.kind(), object.Key())
				case 2:
					in.Replace(object.kind(), objects[:i])
				case 3:
					in.PoolCounts(PoolQuery{Driver: testDriver, ClassName: testClass})
					in.ProfileClaims("train")
				}
			}
		})
	}
	running.Wait()
}
