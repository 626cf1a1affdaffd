package status

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/inventory"
	"github.com/gpupool/gpupool-operator/internal/plan"
)

// PoolInputs is all that the status of a GpuPool says.
type PoolInputs struct {
	Pool *v1alpha1.GpuPool
	Plan plan.Pool
	// Class is how the pool's DeviceClass stands.
	Class Child
	// Counts are the counts of Plan.Query; nil until the cluster has been read once, and without a query.
	Counts *inventory.PoolCounts
	Now    time.Time
}

// ForPool is the whole status of a GpuPool.
func ForPool(in PoolInputs) v1alpha1.GpuPoolStatus {
	status := v1alpha1.GpuPoolStatus{
		ObservedGeneration: in.Pool.Generation,
		DeviceClassName:    in.Plan.ClassName,
	}
	if in.Counts != nil {
		setPoolCounts(&status, in.Counts)
		status.Excluded = excluded(in.Plan.Explain(in.Counts.Excluded))
	}
	conditions := summarize(accepted(in.Plan.Refused), in.classPublished(), in.driverReady())
	conditions = append(conditions, in.inventoryComplete().Condition, in.devicesFound().Condition)
	status.Conditions = settle(conditions, in.Pool.Status.Conditions, in.Pool.Generation, in.Now)
	return status
}

func accepted(refused *plan.Finding) verdict {
	if refused != nil {
		return isFalse(v1alpha1.ConditionAccepted, refused.Reason, refused.Message)
	}
	return isTrue(v1alpha1.ConditionAccepted, v1alpha1.ReasonAccepted, "")
}

func (in PoolInputs) classPublished() verdict {
	const published = v1alpha1.ConditionClassPublished
	name := in.Plan.ClassName
	switch reason := in.Class.Reason; reason {
	case v1alpha1.ReasonPublished:
		if in.Plan.Refused != nil {
			return isTrue(published, reason, fmt.Sprintf("DeviceClass %q stays as the last accepted spec made it", name))
		}
		if in.Plan.WithoutName != nil {
			return isFalse(published, in.Plan.WithoutName.Reason, in.Plan.WithoutName.Message)
		}
		return isTrue(published, reason, "")
	case v1alpha1.ReasonFeatureUnavailable:
		return isTrue(published, reason, fmt.Sprintf("DeviceClass %q is published without what the API server does not "+
			"know: extendedResourceName needs the feature gate DRAExtendedResource", name))
	case v1alpha1.ReasonNotAccepted:
		return isFalse(published, reason, fmt.Sprintf("DeviceClass %q is not written while the spec is not accepted", name))
	case v1alpha1.ReasonNameTaken:
		return isFalse(published, reason, fmt.Sprintf("DeviceClass %q belongs to somebody else; delete it, or delete this "+
			"GpuPool and create it with another deviceClass.name (the field is immutable)", name))
	case v1alpha1.ReasonContended:
		return isFalse(published, reason, fmt.Sprintf("Somebody else keeps changing DeviceClass %q; "+
			"it is corrected with growing delays; metadata.managedFields of the class names who", name))
	case v1alpha1.ReasonSuspended:
		return isFalse(published, reason,
			fmt.Sprintf("DeviceClass %q is not as the spec wants it, and suspend is true", name))
	default:
		message := fmt.Sprintf("Writing DeviceClass %q failed and is tried again", name)
		if in.Class.Detail != "" {
			message += ": " + in.Class.Detail
		}
		return isFalse(published, reason, message)
	}
}

// driverReady judges by slices: a driver pod that runs and publishes nothing serves nobody.
func (in PoolInputs) driverReady() verdict {
	const ready = v1alpha1.ConditionDriverReady
	if in.Plan.Refused != nil {
		return isUnknown(ready, v1alpha1.ReasonNotAccepted, "Not judged while the spec is not accepted")
	}
	if in.Counts == nil {
		return isUnknown(ready, v1alpha1.ReasonSyncing, "Reading the cluster's ResourceSlices, ResourceClaims and Nodes")
	}
	driver, nodes, enough := in.Pool.Spec.Driver.Name, in.Counts.Nodes, 1
	if selection := in.Pool.Spec.Nodes; selection != nil && selection.MinReadyNodes != nil {
		enough = int(*selection.MinReadyNodes)
	}
	switch {
	case nodes.Publishing >= enough && nodes.Publishing > 0:
		return isTrue(ready, v1alpha1.ReasonPublishing, "")
	case nodes.Publishing >= enough:
		return isTrue(ready, v1alpha1.ReasonNoNodes,
			fmt.Sprintf("Driver %q publishes on no selected node, and minReadyNodes is 0", driver))
	case nodes.Selected == 0:
		return isFalse(ready, v1alpha1.ReasonTooFewNodes,
			"No node matches nodes.selectorTerms; label nodes, or set minReadyNodes to 0 if the pool scales from zero")
	case nodes.Publishing == 0:
		return isFalse(ready, v1alpha1.ReasonNotPublishing,
			fmt.Sprintf("No selected node has a ResourceSlice of driver %q; check that the driver runs there", driver))
	}
	return isFalse(ready, v1alpha1.ReasonTooFewNodes,
		fmt.Sprintf("Driver %q publishes on fewer of the selected nodes than minReadyNodes", driver))
}

func (in PoolInputs) inventoryComplete() verdict {
	const complete = v1alpha1.ConditionInventoryComplete
	switch {
	case in.Plan.Refused != nil:
		return isUnknown(complete, v1alpha1.ReasonNotAccepted, "Not judged while the spec is not accepted")
	case in.Counts == nil:
		return isUnknown(complete, v1alpha1.ReasonSyncing, "Reading the cluster's ResourceSlices, ResourceClaims and Nodes")
	case in.Counts.ResourcePools.Incomplete > 0:
		return isFalse(complete, v1alpha1.ReasonIncomplete,
			"Some resource pools have more or fewer ResourceSlices of their newest generation than they announce, or are "+
				"invalid; the scheduler allocates nothing from them, and their devices are not counted")
	}
	return isTrue(complete, v1alpha1.ReasonComplete, "")
}

func (in PoolInputs) devicesFound() verdict {
	const found = v1alpha1.ConditionDevicesFound
	switch {
	case in.Plan.Refused != nil:
		return isUnknown(found, v1alpha1.ReasonNotAccepted, "Not judged while the spec is not accepted")
	case in.Counts == nil:
		return isUnknown(found, v1alpha1.ReasonSyncing, "Reading the cluster's ResourceSlices, ResourceClaims and Nodes")
	case in.Counts.Nodes.WithDevices > 0:
		return isTrue(found, v1alpha1.ReasonFound, "")
	case len(in.Counts.Excluded) > 0:
		return isFalse(found, v1alpha1.ReasonNoMatchingDevice,
			"The driver publishes devices on the selected nodes, and spec.devices keeps all of them out; "+
				"status.excluded says which field")
	}
	return isFalse(found, v1alpha1.ReasonNoMatchingDevice, "The driver publishes no devices on the selected nodes")
}

// mostModels and mostExcluded are the lengths of status lists (MaxItems).
const (
	mostModels   = 16
	mostExcluded = 32
)

// models are the most frequent ones, of equally frequent ones the first by name.
func models(counts []inventory.ModelCounts) []v1alpha1.ModelCounts {
	sorted := slices.Clone(counts)
	slices.SortStableFunc(sorted, func(a, b inventory.ModelCounts) int { return cmp.Compare(b.Total, a.Total) })
	var list []v1alpha1.ModelCounts
	for _, m := range sorted[:min(len(sorted), mostModels)] {
		list = append(list, v1alpha1.ModelCounts{
			Name: m.Name, Total: number(m.Total), Allocated: number(m.Allocated), Available: number(m.Available),
		})
	}
	return list
}

func excluded(exclusions []plan.Exclusion) []v1alpha1.ExcludedDevices {
	var list []v1alpha1.ExcludedDevices
	for _, e := range exclusions[:min(len(exclusions), mostExcluded)] {
		list = append(list, v1alpha1.ExcludedDevices{Field: e.Field, Devices: *number(e.Devices), Detail: e.Detail})
	}
	return list
}

func setPoolCounts(status *v1alpha1.GpuPoolStatus, counts *inventory.PoolCounts) {
	status.Nodes = &v1alpha1.PoolNodeCounts{
		Selected:    number(counts.Nodes.Selected),
		Publishing:  number(counts.Nodes.Publishing),
		WithDevices: number(counts.Nodes.WithDevices),
	}
	status.ResourcePools = &v1alpha1.ResourcePoolCounts{
		Total:      number(counts.ResourcePools.Total),
		Incomplete: number(counts.ResourcePools.Incomplete),
	}
	if devices := counts.Devices; devices != nil {
		status.Devices = &v1alpha1.DeviceCounts{
			Total:       number(devices.Total),
			Allocated:   number(devices.Allocated),
			Available:   number(devices.Available),
			Unavailable: number(devices.Unavailable),
		}
	}
	status.OutOfScope = number(counts.OutOfScope)
	status.Models = models(counts.Models)
	status.Claims = claimCounts(counts.Claims)
}

func claimCounts(counts inventory.ClaimCounts) *v1alpha1.ClaimCounts {
	return &v1alpha1.ClaimCounts{Allocated: number(counts.Allocated), Pending: number(counts.Pending)}
}

func number(n int) *int32 {
	return ptr.To(int32(min(n, math.MaxInt32)))
}
