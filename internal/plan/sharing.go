package plan

import "github.com/gpupool/gpupool-operator/api/v1alpha1"

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
	for _, request := range profile.Spec.Requests {
		if request.Exactly != nil && asksForSharing(request.Exactly.Devices) {
			return true
		}
		for _, alternative := range request.FirstAvailable {
			if asksForSharing(alternative.Devices) {
				return true
			}
		}
	}
	return false
}

func (p PoolFacts) asksForSharing() bool {
	return p.Devices != nil && asksForSharing(&p.Devices.DeviceSelector)
}

func asksForSharing(devices *v1alpha1.DeviceSelector) bool {
	return devices != nil && devices.Sharing != ""
}
