package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

// ServerFacts are what the API server can do, where that decides what is wanted.
type ServerFacts struct {
	// SharedDevices is whether device selectors may ask for devices that several claims share (DRAConsumableCapacity).
	SharedDevices bool
}

// ClassFacts is what others need to know of a DeviceClass.
type ClassFacts struct {
	Name                 string
	Created              time.Time
	ExtendedResourceName string
}

// PoolFacts is what others need to know of a GpuPool.
type PoolFacts struct {
	// Driver is the pool's driver.
	Driver string
	// ClassName is the name of the pool's DeviceClass.
	ClassName string
	// Devices are the devices that the pool selects of the driver's.
	Devices *v1alpha1.PoolDevices
	// ExtendedResourceName is what the pool wants its class to be called in resource limits; empty if nothing.
	ExtendedResourceName string
	// Published is whether a DeviceClass of that name exists and is the pool's.
	Published bool
}

// FactsOf are the facts about a pool that stand in its spec.
func FactsOf(pool *v1alpha1.GpuPool) PoolFacts {
	facts := PoolFacts{Driver: pool.Spec.Driver.Name, ClassName: ClassName(pool), Devices: pool.Spec.Devices}
	if class := pool.Spec.DeviceClass; class != nil {
		facts.ExtendedResourceName = class.ExtendedResourceName
	}
	return facts
}

// Namespace is a namespace that templates can be written to.
type Namespace struct {
	Name   string
	Labels labels.Set
}
