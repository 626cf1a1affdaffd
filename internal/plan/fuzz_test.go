package plan_test

import (
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/plan"
)

// FuzzSelection plans a pool from whatever users may write: it is refused with a documented reason, or every selector
// compiles, and user text changes no meaning: a device of another driver never matches, nor does one that publishes
// nothing.
func FuzzSelection(f *testing.F) {
	f.Add("gpu.nvidia.com", "Whole", "NVIDIA H100*", "75Gi", "8.0", "580", "uuid", "String", "In", "GPU-1", `device.driver == "x"`)
	f.Add("gpu.amd.com", "Partition", "cpx_nps4", "24Gi", "", "6.14.14", "numaNode", "Int", "AtLeast", "0", "")
	f.Add("unknown.example.com", "", "", "", "", "", `x"] || true || device.attributes["`, "Version", "AtMost", "1.2.3", "true")
	f.Add("tpu.google.com", "Any", `") || true || ("`, "1k", "550.127.08", "6.19.14.31400000", "in", "Bool", "NotIn", "true", `"`)
	f.Fuzz(func(t *testing.T, driver, deviceType, text, size, low, high, name, kind, operator, value, cel string) {
		devices := &v1alpha1.PoolDevices{Type: v1alpha1.DeviceType(deviceType)}
		if text != "" {
			devices.Models = []string{text}
			devices.Architectures = []string{text}
			devices.PartitionProfiles = []string{text, value}
		}
		if q, err := resource.ParseQuantity(size); err == nil {
			devices.Memory = &v1alpha1.QuantityRange{Min: &q}
			devices.Capacity = []v1alpha1.CapacityRequirement{{Name: name, Max: &q}}
		}
		if low != "" || high != "" {
			devices.CUDAComputeCapability = &v1alpha1.VersionRange{Min: low, Max: high}
			devices.GPUDriverVersion = &v1alpha1.VersionRange{Min: high}
		}
		if name != "" {
			devices.Attributes = []v1alpha1.AttributeRequirement{{
				Name: name, Type: v1alpha1.AttributeType(kind), Operator: v1alpha1.AttributeOperator(operator), Values: []string{value},
			}}
		}
		if cel != "" {
			devices.Selectors = []v1alpha1.RawSelector{{CEL: &v1alpha1.CELSelector{Expression: cel}}}
		}
		checkPlan(t, driver, devices)
	})
}

func checkPlan(t *testing.T, driver string, devices *v1alpha1.PoolDevices) {
	t.Helper()
	pool := &v1alpha1.GpuPool{Spec: v1alpha1.GpuPoolSpec{Driver: v1alpha1.Driver{Name: driver}, Devices: devices}}
	planned := plan.ForPool(poolInputs(t, pool))
	if planned.Refused != nil {
		switch planned.Refused.Reason {
		case v1alpha1.ReasonInvalidSelector, v1alpha1.ReasonUnknownDeviceProperty, v1alpha1.ReasonDeviceClassNameRequired:
		default:
			t.Fatalf("refused for %s: %s", planned.Refused.Reason, planned.Refused.Message)
		}
		if !strings.HasPrefix(planned.Refused.Message, "spec.") || planned.Class != nil {
			t.Fatalf("a refusal must name the field and plan nothing: %q", planned.Refused.Message)
		}
		return
	}
	foreign := judge(t, planned, driver+".other", resourcev1.Device{Name: "foreign"})
	if foreign.Matches || foreign.Failure != "" || foreign.Selector != 0 {
		t.Fatalf("a device of another driver: %+v", foreign)
	}
	// Without raw selectors nothing may fail, whatever is published.
	devices.Selectors = nil
	generated := plan.ForPool(poolInputs(t, pool))
	for what, mutant := range mutants(resourcev1.Device{Name: "gpu", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"type": {StringValue: new("gpu")}, "productName": {StringValue: new("x")}, "driverVersion": {VersionValue: new("1.2.3")},
	}}) {
		if verdict := judge(t, generated, driver, mutant); verdict.Failure != "" {
			t.Fatalf("it fails on a device %s: %s", what, verdict.Failure)
		}
	}
}
