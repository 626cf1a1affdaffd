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
	for _, source := range sourcesOf(profile) {
		if source.PoolName != "" {
			names = append(names, source.PoolName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sourcesOf are what the requests of a profile and their alternatives take devices from.
func sourcesOf(profile *v1alpha1.WorkloadProfile) []*v1alpha1.DeviceSource {
	var sources []*v1alpha1.DeviceSource
	for i := range profile.Spec.Requests {
		request := &profile.Spec.Requests[i]
		if request.Exactly != nil {
			sources = append(sources, &request.Exactly.DeviceSource)
		}
		for j := range request.FirstAvailable {
			sources = append(sources, &request.FirstAvailable[j].DeviceSource)
		}
	}
	return sources
}
