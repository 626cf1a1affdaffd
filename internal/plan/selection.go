package plan

import (
	"fmt"
	"strconv"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/catalog"
	"github.com/gpupool/gpupool-operator/internal/selector"
)

// selection translates the devices block of a pool or a request into device selectors, one concept each, so that the
// error of a selector names what failed.
type selection struct {
	driver   string
	entry    *catalog.Entry // nil for a driver that the catalogue does not know
	compiler *selector.Compiler
}

// forPool is the driver and type of the pool, then its selector.
func (s selection) forPool(devices *v1alpha1.PoolDevices) ([]*selector.Compiled, *Finding) {
	if devices == nil {
		devices = &v1alpha1.PoolDevices{}
	}
	tests, refused := s.typeTests(devices.Type)
	if refused != nil {
		return nil, refused
	}
	first := selector.All(append([]string{selector.Driver(s.driver)}, tests...)...)
	return s.compileAll("spec.devices", []located{{"type", first}}, &devices.DeviceSelector)
}

// forRequest is the selector of a request, which narrows a pool: the pool's class has tested driver and type before.
func (s selection) forRequest(path string, devices *v1alpha1.DeviceSelector) ([]*selector.Compiled, *Finding) {
	if devices == nil {
		return nil, nil
	}
	return s.compileAll(path, nil, devices)
}

// located is an expression and the field, below the devices block, that it comes from.
type located struct {
	field      string
	expression string
}

func (s selection) compileAll(
	path string, expressions []located, devices *v1alpha1.DeviceSelector,
) ([]*selector.Compiled, *Finding) {
	generated, refused := s.generate(path, devices)
	if refused != nil {
		return nil, refused
	}
	expressions = append(expressions, generated...)
	for i, raw := range devices.Selectors {
		if raw.CEL != nil {
			expressions = append(expressions, located{fmt.Sprintf("selectors[%d].cel.expression", i), raw.CEL.Expression})
		}
	}
	compiled := make([]*selector.Compiled, 0, len(expressions))
	for _, e := range expressions {
		c, err := s.compiler.Compile(e.expression)
		if err != nil {
			return nil, finding(v1alpha1.ReasonInvalidSelector, "%s.%s: %v", path, e.field, err)
		}
		compiled = append(compiled, c)
	}
	return compiled, nil
}

// generate builds the selectors of all fields but the raw ones.
func (s selection) generate(path string, devices *v1alpha1.DeviceSelector) ([]located, *Finding) {
	var expressions []located
	if len(devices.Models) > 0 {
		if s.entry == nil || s.entry.Model == "" {
			return nil, s.unknownProperty(path+".models", "attributes", "{name: model, operator: In, values: [...]}")
		}
		model := selector.ParseName(s.entry.Model, s.driver)
		expressions = append(expressions, located{"models", selector.StringMatches(model, devices.Models...)})
	}
	if memory := devices.Memory; memory != nil {
		if s.entry == nil || len(s.entry.Memory) == 0 {
			return nil, s.unknownProperty(path+".memory", "selectors", fmt.Sprintf(
				"device.capacity[%q].?memory.orValue(quantity(\"0\")).compareTo(quantity(\"16Gi\")) >= 0", s.driver))
		}
		names := make([]selector.Name, 0, len(s.entry.Memory))
		for _, name := range s.entry.Memory {
			names = append(names, selector.ParseName(name, s.driver))
		}
		expressions = append(expressions, located{"memory", selector.CapacityBetween(names, memory.Min, memory.Max)})
	}
	for i, requirement := range devices.Attributes {
		field := fmt.Sprintf("attributes[%d]", i)
		test, err := s.attributeTest(requirement)
		if err != nil {
			return nil, finding(v1alpha1.ReasonInvalidSelector, "%s.%s: %v", path, field, err)
		}
		expressions = append(expressions, located{field, test})
	}
	return expressions, nil
}

// typeTests are what the driver's devices of a type have in common; none for Any.
func (s selection) typeTests(deviceType v1alpha1.DeviceType) ([]string, *Finding) {
	if deviceType == "" {
		deviceType = v1alpha1.DeviceWhole
		if s.entry == nil {
			deviceType = v1alpha1.DeviceAny
		}
	}
	if deviceType == v1alpha1.DeviceAny {
		return nil, nil
	}
	if s.entry == nil {
		return nil, finding(v1alpha1.ReasonUnknownDeviceProperty,
			"spec.devices.type: the operator does not know what a %s device of driver %q looks like; "+
				"leave type unset or write Any, and select with spec.devices.attributes", deviceType, s.driver)
	}
	requirements, known := s.entry.Types[deviceType]
	if !known {
		return nil, finding(v1alpha1.ReasonUnknownDeviceProperty,
			"spec.devices.type: driver %q publishes no %s devices that the operator knows of; "+
				"write Any and select with spec.devices.attributes", s.driver, deviceType)
	}
	tests := make([]string, 0, len(requirements))
	for _, requirement := range requirements {
		test, err := s.attributeTest(requirement)
		if err != nil {
			return nil, finding(v1alpha1.ReasonInvalidSelector, "spec.devices.type: %v", err)
		}
		tests = append(tests, test)
	}
	return tests, nil
}

func (s selection) unknownProperty(field, instead, example string) *Finding {
	return finding(v1alpha1.ReasonUnknownDeviceProperty,
		"%s: the operator does not know how driver %q publishes it; select with devices.%s instead, for example %s",
		field, s.driver, instead, example)
}

// attributeTest is the expression of one attribute requirement. The error is for values that the schema refuses, so
// that a requirement which did not pass through the API server is refused too.
func (s selection) attributeTest(r v1alpha1.AttributeRequirement) (string, error) {
	name := selector.ParseName(r.Name, s.driver)
	switch r.Operator {
	case v1alpha1.AttributeExists:
		return selector.HasAttribute(name), nil
	case v1alpha1.AttributeDoesNotExist:
		return selector.Not(selector.HasAttribute(name)), nil
	case v1alpha1.AttributeIn, v1alpha1.AttributeNotIn:
		test, err := attributeIn(name, r.Type, r.Values)
		if err == nil && r.Operator == v1alpha1.AttributeNotIn {
			test = selector.Not(test)
		}
		return test, err
	case v1alpha1.AttributeAtLeast, v1alpha1.AttributeAtMost:
		return attributeBound(name, r)
	}
	return "", fmt.Errorf("operator %q is unknown", r.Operator)
}

func attributeIn(name selector.Name, attributeType v1alpha1.AttributeType, values []string) (string, error) {
	if len(values) == 0 {
		return "", fmt.Errorf("values must not be empty")
	}
	switch attributeType {
	case v1alpha1.AttributeString, "":
		return selector.StringIn(name, values...), nil
	case v1alpha1.AttributeInt:
		ints, err := parseAll(values, parseInt)
		return selector.IntIn(name, ints...), err
	case v1alpha1.AttributeBool:
		bools, err := parseAll(values, strconv.ParseBool)
		return selector.BoolIn(name, bools...), err
	case v1alpha1.AttributeVersion:
		versions, err := parseAll(values, selector.ParseVersion)
		return selector.VersionIn(name, versions...), err
	}
	return "", fmt.Errorf("type %q is unknown", attributeType)
}

func attributeBound(name selector.Name, r v1alpha1.AttributeRequirement) (string, error) {
	if len(r.Values) != 1 {
		return "", fmt.Errorf("operator %s must have exactly one value", r.Operator)
	}
	atLeast := r.Operator == v1alpha1.AttributeAtLeast
	switch r.Type {
	case v1alpha1.AttributeInt:
		bound, err := parseInt(r.Values[0])
		if atLeast {
			return selector.IntBetween(name, &bound, nil), err
		}
		return selector.IntBetween(name, nil, &bound), err
	case v1alpha1.AttributeVersion:
		bound, err := selector.ParseVersion(r.Values[0])
		if err != nil {
			return "", err
		}
		if atLeast {
			return selector.VersionBetween(name, &bound, nil), nil
		}
		return selector.VersionBetween(name, nil, &bound), nil
	}
	return "", fmt.Errorf("operator %s must have type Int or Version", r.Operator)
}

func parseInt(text string) (int64, error) {
	return strconv.ParseInt(text, 10, 64)
}

func parseAll[T any](values []string, parse func(string) (T, error)) ([]T, error) {
	parsed := make([]T, 0, len(values))
	for _, v := range values {
		p, err := parse(v)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, p)
	}
	return parsed, nil
}
