package inventory

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Inventory holds the compact forms of a cluster's objects and answers questions about them. It is safe for concurrent
// use. Make one with New.
type Inventory struct {
	mutex   sync.RWMutex
	objects [kinds]map[types.NamespacedName]Object
	// required kinds must have been replaced once before anything is known.
	required, replaced [kinds]bool
}

// New makes an empty Inventory.
func New() *Inventory {
	in := &Inventory{required: [kinds]bool{Slices: true, Claims: true, Pods: true, Nodes: true}}
	for kind := range in.objects {
		in.objects[kind] = map[types.NamespacedName]Object{}
	}
	return in
}

// Require makes a kind one without which nothing is known. All are from the start but TaintRules, which not every
// cluster serves: whoever knows that this one does requires them before the first Replace.
func (in *Inventory) Require(kind Kind) {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	in.required[kind] = true
}

// Synced says whether every required kind was replaced once, that is, whether the inventory has seen the whole cluster.
func (in *Inventory) Synced() bool {
	in.mutex.RLock()
	defer in.mutex.RUnlock()
	return in.synced()
}

func (in *Inventory) synced() bool {
	for kind, required := range in.required {
		if required && !in.replaced[kind] {
			return false
		}
	}
	return true
}

// Put adds an object, or takes the place of the one with its kind and key. The object must not be changed afterwards.
func (in *Inventory) Put(object Object) Change {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	wasSynced, changed := in.synced(), newTouched()
	in.put(object, changed)
	return in.change(wasSynced, changed)
}

// Delete removes the object of a kind with a key, if there is one.
func (in *Inventory) Delete(kind Kind, key types.NamespacedName) Change {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	wasSynced, changed := in.synced(), newTouched()
	in.delete(kind, key, changed)
	return in.change(wasSynced, changed)
}

// Replace makes objects all that there is of a kind, as after a list of the API server. Objects of other kinds are
// ignored. The Change is what differs from before, and everything once the inventory is synced by it.
func (in *Inventory) Replace(kind Kind, objects []Object) Change {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	wasSynced, changed := in.synced(), newTouched()
	kept := make(map[types.NamespacedName]struct{}, len(objects))
	for _, object := range objects {
		if object.kind() == kind {
			kept[object.Key()] = struct{}{}
			in.put(object, changed)
		}
	}
	for key := range in.objects[kind] {
		if _, found := kept[key]; !found {
			in.delete(kind, key, changed)
		}
	}
	in.replaced[kind] = true
	return in.change(wasSynced, changed)
}

// change is what differs. Until the inventory is synced there are no answers that could, and then there are all.
func (in *Inventory) change(wasSynced bool, changed *touched) Change {
	switch {
	case !in.synced():
		return Change{}
	case !wasSynced:
		return Change{Everything: true}
	}
	return changed.change()
}

func (in *Inventory) put(object Object, changed *touched) {
	kind, key := object.kind(), object.Key()
	old, found := in.objects[kind][key]
	if found {
		// Interned parts are one pointer where they are equal, which makes this cheap.
		if reflect.DeepEqual(old, object) {
			return
		}
		changed.add(old, in.claim)
	}
	changed.add(object, in.claim)
	in.objects[kind][key] = object
}

func (in *Inventory) delete(kind Kind, key types.NamespacedName, changed *touched) {
	if old, found := in.objects[kind][key]; found {
		changed.add(old, in.claim)
		delete(in.objects[kind], key)
	}
}

func (in *Inventory) claim(key types.NamespacedName) (*Claim, bool) {
	claim, found := in.objects[Claims][key].(*Claim)
	return claim, found
}

// PoolCounts counts what a PoolQuery selects. It returns false, and no counts, until the inventory is synced.
func (in *Inventory) PoolCounts(query PoolQuery) (PoolCounts, bool) {
	world, synced := in.world()
	if !synced {
		return PoolCounts{}, false
	}
	return recountPool(world, query), true
}

// TakesWholeDevice says whether a ShareQuery would take shared devices whole. It returns false for known, and no
// answer, until the inventory is synced.
func (in *Inventory) TakesWholeDevice(query ShareQuery) (takes, known bool) {
	world, synced := in.world()
	if !synced {
		return false, false
	}
	return takesWholeDevice(world, query), true
}

// ProfileClaims counts the claims that carry the label of a profile. It returns false, and no counts, until the
// inventory is synced.
func (in *Inventory) ProfileClaims(profile string) (ClaimCounts, bool) {
	world, synced := in.world()
	if !synced {
		return ClaimCounts{}, false
	}
	return recountProfile(world, profile), true
}

// world is all objects, and whether they are all that there are. Objects do not change, so that whoever counts them
// keeps no writer waiting.
func (in *Inventory) world() (world, bool) {
	in.mutex.RLock()
	defer in.mutex.RUnlock()
	if !in.synced() {
		return world{}, false
	}
	return world{
		slices:     listOf[*Slice](in.objects[Slices]),
		claims:     listOf[*Claim](in.objects[Claims]),
		pods:       listOf[*Pod](in.objects[Pods]),
		nodes:      listOf[*Node](in.objects[Nodes]),
		taintRules: listOf[*TaintRule](in.objects[TaintRules]),
	}, true
}

func listOf[T Object](objects map[types.NamespacedName]Object) []T {
	list := make([]T, 0, len(objects))
	for _, object := range objects {
		if typed, ok := object.(T); ok {
			list = append(list, typed)
		}
	}
	return list
}
