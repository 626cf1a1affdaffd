package plan

import (
	"slices"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

// PoolAsksForSharing says whether a pool selects devices by how they are shared, which depends on the server.
func PoolAsksForSharing(pool *v1alpha1.GpuPool) bool {
	return FactsOf(pool).asksForSharing()
}

// ProfileAsksForSharing says whether a profile, or a pool that it names, selects devices by how they are shared.
func ProfileAsksForSharing(profile *v1alpha1.WorkloadProfile, pools map[string]PoolFacts) bool {
	for _, pool := range pools {
		if pool.asksForSharing() {
			return true
		}
	}
	return slices.ContainsFunc(sourcesOf(profile), func(source *v1alpha1.DeviceSource) bool {
		return asksForSharing(source.Devices)
	})
}

func (p PoolFacts) asksForSharing() bool {
	return p.Devices != nil && asksForSharing(&p.Devices.DeviceSelector)
}

func asksForSharing(devices *v1alpha1.DeviceSelector) bool {
	return devices != nil && devices.Sharing != ""
}
