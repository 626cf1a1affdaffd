package plan

import (
	"slices"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

// ClassName is the name of the DeviceClass of a pool.
func ClassName(pool *v1alpha1.GpuPool) string {
	if class := pool.Spec.DeviceClass; class != nil && class.Name != "" {
		return class.Name
	}
	return pool.Name + v1alpha1.DefaultDeviceClassSuffix
}

// TemplateName is the name of the ResourceClaimTemplates of a profile.
func TemplateName(profile *v1alpha1.WorkloadProfile) string {
	if template := profile.Spec.Template; template != nil && template.Name != "" {
		return template.Name
	}
	return profile.Name
}

// PoolNames are the GpuPools that a profile takes devices from, each once, sorted.
func PoolNames(profile *v1alpha1.WorkloadProfile) []string {
	var names []string
	for _, request := range profile.Spec.Requests {
		if request.Exactly != nil && request.Exactly.PoolName != "" {
			names = append(names, request.Exactly.PoolName)
		}
		for _, alternative := range request.FirstAvailable {
			if alternative.PoolName != "" {
				names = append(names, alternative.PoolName)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
