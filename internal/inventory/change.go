package inventory

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Change says which answers may differ now. What it does not name has not changed. The zero Change is none, as is every
// one before the Inventory is synced: there are no answers yet.
type Change struct {
	// Everything is every answer; the other fields are then unset.
	Everything bool
	// Drivers are the drivers whose devices, or whose devices' holders, may differ.
	Drivers []string
	// Classes are the DeviceClasses whose claims may differ.
	Classes []string
	// Profiles are the profiles whose claims may differ.
	Profiles []string
}

// IsZero says whether no answer differs.
func (c Change) IsZero() bool {
	return !c.Everything && len(c.Drivers) == 0 && len(c.Classes) == 0 && len(c.Profiles) == 0
}

// TouchesPool says whether PoolCounts of a driver and a DeviceClass may differ.
func (c Change) TouchesPool(driver, class string) bool {
	return c.Everything || slices.Contains(c.Drivers, driver) || slices.Contains(c.Classes, class)
}

// TouchesProfile says whether ProfileClaims of a profile may differ.
func (c Change) TouchesProfile(profile string) bool {
	return c.Everything || slices.Contains(c.Profiles, profile)
}

// Union is both changes.
func (c Change) Union(other Change) Change {
	if c.Everything || other.Everything {
		return Change{Everything: true}
	}
	return Change{
		Drivers:  union(c.Drivers, other.Drivers),
		Classes:  union(c.Classes, other.Classes),
		Profiles: union(c.Profiles, other.Profiles),
	}
}

func union(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Compact(both)
}

// touched collects what objects touch, before they change and after.
type touched struct {
	everything                 bool
	drivers, classes, profiles sets.Set[Symbol]
}

func newTouched() *touched {
	return &touched{drivers: sets.New[Symbol](), classes: sets.New[Symbol](), profiles: sets.New[Symbol]()}
}

// add adds what an object touches. Pods touch the claims that they refer to, which lookup finds.
func (t *touched) add(object Object, lookup func(types.NamespacedName) (*Claim, bool)) {
	switch o := object.(type) {
	case *Slice:
		t.drivers.Insert(o.Driver)
	case *Claim:
		t.addClaim(o)
		for i := range o.Results {
			t.drivers.Insert(o.Results[i].Driver)
		}
	case *Pod:
		for i := range o.Claims {
			key := types.NamespacedName{Namespace: o.Namespace.String(), Name: o.Claims[i].Claim}
			if claim, found := lookup(key); found {
				t.addClaim(claim)
			}
		}
	case *Node:
		t.everything = true
	case *TaintRule:
		switch {
		case o.Selector == nil:
		case o.Selector.Driver == Symbol{}:
			t.everything = true
		default:
			t.drivers.Insert(o.Selector.Driver)
		}
	}
}

func (t *touched) addClaim(claim *Claim) {
	for class := range claim.classes {
		t.classes.Insert(class)
	}
	if claim.Profile != (Symbol{}) {
		t.profiles.Insert(claim.Profile)
	}
}

func (t *touched) change() Change {
	if t.everything {
		return Change{Everything: true}
	}
	return Change{
		Drivers:  sortedNames(t.drivers),
		Classes:  sortedNames(t.classes),
		Profiles: sortedNames(t.profiles),
	}
}

func sortedNames(symbols sets.Set[Symbol]) []string {
	if len(symbols) == 0 {
		return nil
	}
	names := make([]string, 0, len(symbols))
	for symbol := range symbols {
		names = append(names, symbol.String())
	}
	slices.Sort(names)
	return names
}
