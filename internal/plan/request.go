package plan

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourceac "k8s.io/client-go/applyconfigurations/resource/v1"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/inventory"
)

// request renders a request, with the question of shared devices for it or for each of its alternatives.
func (in ProfileInputs) request(
	path string, request v1alpha1.DeviceRequest,
) (*resourceac.DeviceRequestApplyConfiguration, []inventory.ShareQuery, *Finding) {
	rendered := resourceac.DeviceRequest().WithName(request.Name)
	if exactly := request.Exactly; exactly != nil {
		exact, shares, refused := in.source(path+".exactly", &exactly.DeviceSource)
		if refused != nil {
			return nil, nil, refused
		}
		if exactly.AdminAccess != nil && *exactly.AdminAccess {
			exact.WithAdminAccess(true)
		}
		return rendered.WithExactly(exact), shares, nil
	}
	var shares []inventory.ShareQuery
	for i := range request.FirstAvailable {
		alternative := &request.FirstAvailable[i]
		exact, taken, refused := in.source(fmt.Sprintf("%s.firstAvailable[%d]", path, i), &alternative.DeviceSource)
		if refused != nil {
			return nil, nil, refused
		}
		shares = append(shares, taken...)
		rendered.WithFirstAvailable(&resourceac.DeviceSubRequestApplyConfiguration{
			Name:            &alternative.Name,
			DeviceClassName: exact.DeviceClassName,
			Selectors:       exact.Selectors,
			AllocationMode:  exact.AllocationMode,
			Count:           exact.Count,
			Tolerations:     exact.Tolerations,
			Capacity:        exact.Capacity,
		})
	}
	return rendered, shares, nil
}

// source renders what a request takes and from where. A class that no pool stands for leaves no question.
func (in ProfileInputs) source(
	path string, from *v1alpha1.DeviceSource,
) (*resourceac.ExactDeviceRequestApplyConfiguration, []inventory.ShareQuery, *Finding) {
	narrowing, className, refused := in.origin(path, from)
	if refused != nil {
		return nil, nil, refused
	}
	narrowed, refused := narrowing.forRequest(path+".devices", from.Devices)
	if refused != nil {
		return nil, nil, refused
	}
	exact := resourceac.ExactDeviceRequest().
		WithDeviceClassName(className).
		WithSelectors(narrowed.selectors()...)
	if from.AllocationMode == v1alpha1.AllocationAll {
		exact.WithAllocationMode(resourcev1.DeviceAllocationModeAll)
	} else {
		exact.WithAllocationMode(resourcev1.DeviceAllocationModeExactCount).WithCount(int64(max(from.Count, 1)))
	}
	for i := range from.Tolerations {
		exact.WithTolerations(toleration(&from.Tolerations[i]))
	}
	if len(from.CapacityRequests) > 0 {
		amounts := map[resourcev1.QualifiedName]resource.Quantity{}
		for _, c := range from.CapacityRequests {
			amounts[resourcev1.QualifiedName(c.Name)] = *c.Amount
		}
		exact.WithCapacity(resourceac.CapacityRequirements().WithRequests(amounts))
	}
	return exact, in.shares(narrowing, from, narrowed), nil
}

// origin is the class that a source names, by its pool or directly, and who translates what narrows it. A class that no
// pool stands for has no driver that properties could be translated for.
func (in ProfileInputs) origin(path string, from *v1alpha1.DeviceSource) (selection, string, *Finding) {
	if from.PoolName == "" {
		return selection{compiler: in.Compiler, server: in.Server}, from.DeviceClassName, nil
	}
	pool, refused := in.pool(path+".poolName", from.PoolName)
	if refused != nil {
		return selection{}, "", refused
	}
	entry := in.Catalog.Entry(pool.Driver)
	if entry != nil && entry.Rules.AllocationMode != "" && from.AllocationMode != entry.Rules.AllocationMode {
		return selection{}, "", finding(v1alpha1.ReasonAllocationModeRequired,
			"%s.allocationMode: a claim on devices of driver %q must take all of a node; set allocationMode to %s",
			path, pool.Driver, entry.Rules.AllocationMode)
	}
	return selection{pool.Driver, entry, in.Compiler, in.Server}, pool.ClassName, nil
}

// pool is a pool that a request may take from. What is missing may still come: Git has no order.
func (in ProfileInputs) pool(path, name string) (PoolFacts, *Finding) {
	pool, exists := in.Pools[name]
	if !exists {
		return pool, finding(v1alpha1.ReasonPoolNotFound, "%s: GpuPool %q does not exist; waiting for it", path, name)
	}
	if !pool.Published {
		return pool, finding(v1alpha1.ReasonPoolNotPublished,
			"%s: GpuPool %q has not published DeviceClass %q; see its conditions", path, name, pool.ClassName)
	}
	return pool, nil
}

// shares asks the inventory about the devices that the pool and the narrowing leave. A pool that is refused itself has
// other troubles.
func (in ProfileInputs) shares(s selection, from *v1alpha1.DeviceSource, narrowed criteria) []inventory.ShareQuery {
	if from.PoolName == "" {
		return nil
	}
	ofPool, refused := s.forPool(in.Pools[from.PoolName].Devices)
	if refused != nil {
		return nil
	}
	query := inventory.ShareQuery{Driver: s.driver, Devices: ofPool, Narrowing: narrowed}
	for _, c := range from.CapacityRequests {
		query.Requested = append(query.Requested, c.Name)
	}
	return []inventory.ShareQuery{query}
}

// toleration says all fields that the API server would default.
func toleration(from *v1alpha1.DeviceToleration) *resourceac.DeviceTolerationApplyConfiguration {
	rendered := resourceac.DeviceToleration().
		WithOperator(resourcev1.DeviceTolerationOperator(from.Operator)).
		WithEffect(resourcev1.DeviceTaintEffect(from.Effect))
	if from.Key != "" {
		rendered.WithKey(from.Key)
	}
	if from.Value != nil {
		rendered.WithValue(*from.Value)
	}
	if from.TolerationSeconds != nil {
		rendered.WithTolerationSeconds(*from.TolerationSeconds)
	}
	return rendered
}
