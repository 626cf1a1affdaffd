package plan

import (
	"fmt"

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
	server   ServerFacts
}

// forPool is the driver and type of the pool, then its selector.
func (s selection) forPool(devices *v1alpha1.PoolDevices) (criteria, *Finding) {
	if devices == nil {
		devices = &v1alpha1.PoolDevices{}
	}
	tests, refused := s.typeTests(devices.Type)
	if refused != nil {
		return nil, refused
	}
	first := rule{
		field:      "type",
		expression: selector.All(append([]string{selector.Driver(s.driver)}, tests.expressions...)...),
		reading:    tests.reading,
	}
	return s.compileAll("spec.devices", []rule{first}, &devices.DeviceSelector)
}

// forRequest is the selector of a request, which narrows a pool: the pool's class has tested driver and type before.
func (s selection) forRequest(path string, devices *v1alpha1.DeviceSelector) (criteria, *Finding) {
	if devices == nil {
		return nil, nil
	}
	return s.compileAll(path, nil, devices)
}

// rule is an expression, the field below the devices block that it comes from, and what it reads of a device.
type rule struct {
	field      string
	expression string
	reading    reading
	// within is where in the field the expression stands, for one that the user wrote.
	within string
}

// compileAll compiles what comes before, then all fields of the selector.
func (s selection) compileAll(
	path string, rules []rule, devices *v1alpha1.DeviceSelector,
) (criteria, *Finding) {
	generators := []func(string, *v1alpha1.DeviceSelector) ([]rule, *Finding){s.neutral, s.attributes, s.capacity}
	for _, generate := range generators {
		generated, refused := generate(path, devices)
		if refused != nil {
			return nil, refused
		}
		rules = append(rules, generated...)
	}
	for i, raw := range devices.Selectors {
		if raw.CEL != nil {
			rules = append(rules, rule{
				field: fmt.Sprintf("selectors[%d]", i), within: ".cel.expression", expression: raw.CEL.Expression,
			})
		}
	}
	compiledRules := make(criteria, 0, len(rules))
	for _, r := range rules {
		compiled, err := s.compiler.Compile(r.expression)
		if err != nil {
			return nil, finding(v1alpha1.ReasonInvalidSelector, "%s.%s%s: %v", path, r.field, r.within, err)
		}
		compiledRules = append(compiledRules, criterion{rule: r, compiled: compiled})
	}
	return compiledRules, nil
}

// attributes are the rules of single attributes.
func (s selection) attributes(path string, devices *v1alpha1.DeviceSelector) ([]rule, *Finding) {
	rules := make([]rule, 0, len(devices.Attributes))
	for i, requirement := range devices.Attributes {
		field := fmt.Sprintf("attributes[%d]", i)
		test, err := s.attributeTest(requirement)
		if err != nil {
			return nil, finding(v1alpha1.ReasonInvalidSelector, "%s.%s: %v", path, field, err)
		}
		rules = append(rules, rule{field: field, expression: test, reading: s.attributeReading(requirement)})
	}
	return rules, nil
}

// capacity are the rules of single capacities.
func (s selection) capacity(_ string, devices *v1alpha1.DeviceSelector) ([]rule, *Finding) {
	rules := make([]rule, 0, len(devices.Capacity))
	for i, c := range devices.Capacity {
		names := []selector.Name{selector.ParseName(c.Name, s.driver)}
		rules = append(rules, rule{
			field:      fmt.Sprintf("capacity[%d]", i),
			expression: selector.CapacityBetween(names, c.Min, c.Max),
			reading:    quantityReading{names: names, min: c.Min, max: c.Max},
		})
	}
	return rules, nil
}

// typeTest is what the devices of a type have in common.
type typeTest struct {
	expressions []string
	reading     reading
}

// typeTests are the tests of a type; none for Any.
func (s selection) typeTests(deviceType v1alpha1.DeviceType) (typeTest, *Finding) {
	deviceType = s.typeOf(deviceType)
	if deviceType == v1alpha1.DeviceAny {
		return typeTest{}, nil
	}
	if s.entry == nil {
		return typeTest{}, finding(v1alpha1.ReasonUnknownDeviceProperty,
			"spec.devices.type: the operator does not know what a %s device of driver %q looks like; "+
				"leave type unset or write Any, and select with spec.devices.attributes", deviceType, s.driver)
	}
	requirements, known := s.entry.Types[deviceType]
	if !known {
		return typeTest{}, finding(v1alpha1.ReasonUnknownDeviceProperty,
			"spec.devices.type: driver %q publishes no %s devices that the operator knows of; "+
				"write Any and select with spec.devices.attributes", s.driver, deviceType)
	}
	var tests typeTest
	for _, requirement := range requirements {
		test, err := s.attributeTest(requirement)
		if err != nil {
			return typeTest{}, finding(v1alpha1.ReasonInvalidSelector, "spec.devices.type: %v", err)
		}
		tests.expressions = append(tests.expressions, test)
		tests.reading = s.attributeReading(requirement)
	}
	return tests, nil
}

// typeOf is the type that is meant where none is said.
func (s selection) typeOf(deviceType v1alpha1.DeviceType) v1alpha1.DeviceType {
	switch {
	case deviceType != "":
		return deviceType
	case s.entry == nil:
		return v1alpha1.DeviceAny
	}
	return v1alpha1.DeviceWhole
}
