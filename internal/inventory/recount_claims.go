package inventory

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// deviceID is a device of one driver.
type deviceID struct {
	pool, device Symbol
}

// holders is who holds which devices of a driver, published or not: the classes that the holding requests name.
type holders map[deviceID][]Symbol

// holdersOf is who holds the devices of a driver.
//
// A device is held as soon as an allocated claim names it, whatever became of the claim's pods, and until the
// allocation is cleared, deletion or not. Access for administration holds nothing. A share of a device holds it as any
// other result does (allocateddevices.go of the scheduler's DynamicResources plugin).
func holdersOf(claims []*Claim, driver Symbol) holders {
	held := holders{}
	for _, claim := range claims {
		for i := range claim.Results {
			if r := &claim.Results[i]; r.Driver == driver && !r.AdminAccess {
				id := deviceID{r.Pool, r.Device}
				held[id] = append(held[id], r.Class)
			}
		}
	}
	return held
}

// orphans is how many devices are held by way of a class and in no current slice. What is missing from a resource pool
// that is not complete may be in a slice that is still to come: it is not counted.
func orphans(held holders, class Symbol, pools []*resourcePool) int {
	incomplete := sets.New[Symbol]()
	published := sets.New[deviceID]()
	for _, pool := range pools {
		if pool.incomplete != "" {
			incomplete.Insert(pool.name)
		}
		for _, slice := range pool.slices {
			for i := range slice.Devices {
				published.Insert(deviceID{pool.name, slice.Devices[i].Name})
			}
		}
	}
	orphaned := 0
	for id, classes := range held {
		if slices.Contains(classes, class) && !incomplete.Has(id.pool) && !published.Has(id) {
			orphaned++
		}
	}
	return orphaned
}

func everyClaim(*Claim) bool { return true }

func everyClass(Symbol) bool { return true }

// countClaims counts the included claims that name an included class. An allocated claim names the classes that its
// results came by, another one all that its requests and their alternatives name.
func countClaims(w world, includes func(*Claim) bool, includesClass func(Symbol) bool) ClaimCounts {
	var counts ClaimCounts
	waiting := waitingFor(w.pods)
	for _, claim := range w.claims {
		if !includes(claim) {
			continue
		}
		takes, observes := claim.results(includesClass)
		switch {
		case takes:
			counts.Allocated++
		case observes:
			counts.AdminAccess++
		case claim.Allocated || claim.Deleting:
		case claim.names(includesClass) && waiting.has(claim):
			counts.Pending++
		}
	}
	return counts
}

// results says whether a result that came by an included class takes a device, and whether one only observes it.
func (c *Claim) results(includesClass func(Symbol) bool) (takes, observes bool) {
	for i := range c.Results {
		if r := &c.Results[i]; includesClass(r.Class) {
			takes = takes || !r.AdminAccess
			observes = observes || r.AdminAccess
		}
	}
	return takes, observes
}

// waiting are the claims for which live pods wait.
type waiting struct {
	named     sets.Set[types.NamespacedName]
	generated sets.Set[generatedClaim]
}

// generatedClaim is a claim that was made for a pod.
type generatedClaim struct {
	name types.NamespacedName
	pod  UID
}

// waitingFor resolves the claims of pods that wait to be placed as the scheduler does: a pod names a claim, or its
// status names the one that was made for it, which it must then own. A pod that is being deleted waits for nothing.
func waitingFor(pods []*Pod) waiting {
	w := waiting{named: sets.New[types.NamespacedName](), generated: sets.New[generatedClaim]()}
	for _, pod := range pods {
		if pod.Deleting {
			continue
		}
		for i := range pod.Claims {
			name := types.NamespacedName{Namespace: pod.Namespace.String(), Name: pod.Claims[i].Claim}
			if pod.Claims[i].Generated {
				w.generated.Insert(generatedClaim{name: name, pod: pod.UID})
			} else {
				w.named.Insert(name)
			}
		}
	}
	return w
}

func (w waiting) has(claim *Claim) bool {
	return w.named.Has(claim.Key()) || w.generated.Has(generatedClaim{name: claim.Key(), pod: claim.OwnerPod})
}
