package plan

import (
	"cmp"
	"slices"
)

// ownClass is the DeviceClass of a pool among others.
type ownClass struct {
	pool, class string
}

// extendedResource says whether a pool's class may hold an extended resource name. Kubernetes lets several classes
// claim one, and takes the newest, of equally new ones the first by name (resource.k8s.io/v1 DeviceClassSpec). The
// operator never starts such a race: the class that holds the name keeps it, and if none does the pool first by name
// gets it. Holder is the class or pool that has it otherwise.
func (o ownClass) extendedResource(
	name string, classes []ClassFacts, pools map[string]PoolFacts,
) (holder string, mine bool) {
	var holders []ClassFacts
	for _, class := range classes {
		if class.ExtendedResourceName == name {
			holders = append(holders, class)
		}
	}
	if len(holders) > 0 {
		winner := slices.MinFunc(holders, func(a, b ClassFacts) int {
			return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Name, b.Name))
		})
		return `DeviceClass "` + winner.Name + `"`, winner.Name == o.class
	}
	first := o.pool
	for pool, facts := range pools {
		if facts.ExtendedResourceName == name && pool < first {
			first = pool
		}
	}
	return `GpuPool "` + first + `"`, first == o.pool
}
