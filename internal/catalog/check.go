package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

// check finds what strict decoding does not.
func (e *Entry) check() error {
	problems := append(e.checkTypes(), e.Properties.check()...)
	for _, deviceType := range slices.Sorted(maps.Keys(e.Rules.DeviceClassNames)) {
		if _, known := e.Types[deviceType]; !known {
			problems = append(problems, fmt.Errorf("rules.deviceClassNames must not have %q, which types lacks", deviceType))
		}
	}
	if mode := e.Rules.AllocationMode; mode != "" && mode != v1alpha1.AllocationAll {
		problems = append(problems, fmt.Errorf("rules.allocationMode must be %s, or unset", v1alpha1.AllocationAll))
	}
	return errors.Join(problems...)
}

func (e *Entry) checkTypes() []error {
	var problems []error
	if _, known := e.Types[v1alpha1.DeviceWhole]; !known {
		problems = append(problems, errors.New("types must say what a Whole device is"))
	}
	for _, deviceType := range slices.Sorted(maps.Keys(e.Types)) {
		switch deviceType {
		case v1alpha1.DeviceWhole, v1alpha1.DevicePartition, v1alpha1.DevicePassthrough:
		default:
			problems = append(problems, fmt.Errorf("types must not have %q", deviceType))
		}
		for _, r := range e.Types[deviceType] {
			if r.Name == "" || r.Operator == "" {
				problems = append(problems, fmt.Errorf("types.%s must have name and operator", deviceType))
			}
		}
	}
	return problems
}

func (p *Properties) check() []error {
	var problems []error
	for name, property := range map[string]*StringProperty{
		"model": p.Model, "architecture": p.Architecture, "partitionProfile": p.PartitionProfile,
	} {
		if property == nil {
			continue
		}
		if property.Attribute == "" {
			problems = append(problems, fmt.Errorf("properties.%s must have attribute", name))
		}
		if n := len(property.Joined); n != 0 && n != 2 {
			problems = append(problems, fmt.Errorf("properties.%s.joined must be two attributes", name))
		}
	}
	for name, property := range map[string]*VersionProperty{
		"cudaComputeCapability": p.CUDAComputeCapability, "gpuDriverVersion": p.GPUDriverVersion,
	} {
		if property != nil && property.Attribute == "" {
			problems = append(problems, fmt.Errorf("properties.%s must have attribute", name))
		}
	}
	if p.Memory != nil && len(p.Memory.Capacities) == 0 {
		problems = append(problems, errors.New("properties.memory must have capacities"))
	}
	return problems
}
