package inventory

import (
	"encoding/json"
	"slices"
	"strings"
	"unique"

	resourcev1 "k8s.io/api/resource/v1"
)

// Device is a device of a ResourceSlice. Its lists are sorted by name.
type Device struct {
	Name       Symbol
	Attributes []Attribute
	Capacity   []Capacity
	// Consumes is what the device takes of its resource pool's counter sets while it is allocated.
	Consumes []CounterSet
	Taints   []Taint
	// Scope is from which nodes the device is reachable; only in a slice whose scope is ScopePerDevice.
	Scope *Scope
	// Shared devices can be allocated to several claims at once (allowMultipleAllocations).
	Shared bool
}

// Attribute is a named value that a device publishes. Equal attributes are one pointer.
type Attribute struct {
	handle unique.Handle[attribute]
}

type attribute struct {
	name  string
	value attributeValue
}

// attributeValue is one of the eight forms of a DeviceAttribute. Lists are kept as JSON text, which makes every value
// comparable; they are rare and only ever read as a whole.
type attributeValue struct {
	form   attributeForm
	number int64
	text   string
}

type attributeForm uint8

const (
	formNone attributeForm = iota
	formInt
	formBool
	formString
	formVersion
	formInts
	formBools
	formStrings
	formVersions
)

func newAttribute(name resourcev1.QualifiedName, a resourcev1.DeviceAttribute) Attribute {
	return Attribute{handle: unique.Make(attribute{name: string(name), value: newAttributeValue(a)})}
}

func newAttributeValue(a resourcev1.DeviceAttribute) attributeValue {
	switch {
	case a.IntValue != nil:
		return attributeValue{form: formInt, number: *a.IntValue}
	case a.BoolValue != nil:
		number := int64(0)
		if *a.BoolValue {
			number = 1
		}
		return attributeValue{form: formBool, number: number}
	case a.StringValue != nil:
		return attributeValue{form: formString, text: *a.StringValue}
	case a.VersionValue != nil:
		return attributeValue{form: formVersion, text: *a.VersionValue}
	case a.IntValues != nil:
		return attributeValue{form: formInts, text: listText(a.IntValues)}
	case a.BoolValues != nil:
		return attributeValue{form: formBools, text: listText(a.BoolValues)}
	case a.StringValues != nil:
		return attributeValue{form: formStrings, text: listText(a.StringValues)}
	case a.VersionValues != nil:
		return attributeValue{form: formVersions, text: listText(a.VersionValues)}
	}
	// A form of a later Kubernetes: an attribute without a value, as the scheduler's own decoder sees it.
	return attributeValue{}
}

func (a Attribute) get() attribute {
	if a == (Attribute{}) {
		return attribute{}
	}
	return a.handle.Value()
}

// Name is the attribute's name as the driver publishes it: bare, or qualified with a domain.
func (a Attribute) Name() string { return a.get().name }

// Value is the attribute's value as the API has it. It is empty for a form that this version does not know.
func (a Attribute) Value() resourcev1.DeviceAttribute {
	v := a.get().value
	switch v.form {
	case formInt:
		return resourcev1.DeviceAttribute{IntValue: new(v.number)}
	case formBool:
		return resourcev1.DeviceAttribute{BoolValue: new(v.number != 0)}
	case formString:
		return resourcev1.DeviceAttribute{StringValue: new(v.text)}
	case formVersion:
		return resourcev1.DeviceAttribute{VersionValue: new(v.text)}
	case formInts:
		return resourcev1.DeviceAttribute{IntValues: listValues[int64](v.text)}
	case formBools:
		return resourcev1.DeviceAttribute{BoolValues: listValues[bool](v.text)}
	case formStrings:
		return resourcev1.DeviceAttribute{StringValues: listValues[string](v.text)}
	case formVersions:
		return resourcev1.DeviceAttribute{VersionValues: listValues[string](v.text)}
	case formNone:
	}
	return resourcev1.DeviceAttribute{}
}

// listText and listValues are inverse. Lists of numbers, booleans and strings always have a JSON text, and that text
// always parses, so neither can fail.
func listText[T any](values []T) string {
	text, _ := json.Marshal(values)
	return string(text)
}

func listValues[T any](text string) []T {
	var values []T
	_ = json.Unmarshal([]byte(text), &values)
	return values
}

// Capacity is a named amount that a device has. Equal capacities are one pointer.
type Capacity struct {
	handle unique.Handle[capacity]
}

type capacity struct {
	name   string
	amount Amount
	// wholeByDefault is whether a claim that names no amount takes all of it.
	wholeByDefault bool
}

func newCapacity(name resourcev1.QualifiedName, amount Amount) Capacity {
	return Capacity{handle: unique.Make(capacity{name: string(name), amount: amount})}
}

// newDeviceCapacity knows what a claim takes that names no amount: the default of the policy, and without one all of it
// (resource.k8s.io/v1 CapacityRequestPolicy).
func newDeviceCapacity(name resourcev1.QualifiedName, c resourcev1.DeviceCapacity) Capacity {
	whole := c.RequestPolicy == nil || c.RequestPolicy.Default == nil || c.RequestPolicy.Default.Cmp(c.Value) >= 0
	return Capacity{handle: unique.Make(capacity{
		name: string(name), amount: newAmount(c.Value), wholeByDefault: whole && !c.Value.IsZero(),
	})}
}

func (c Capacity) get() capacity {
	if c == (Capacity{}) {
		return capacity{}
	}
	return c.handle.Value()
}

// Name is the capacity's name as the driver publishes it: bare, or qualified with a domain.
func (c Capacity) Name() string { return c.get().name }

// Amount is how much there is.
func (c Capacity) Amount() Amount { return c.get().amount }

// CounterSet is a named set of counters: what a resource pool has, or what a device consumes of it.
type CounterSet struct {
	Name     Symbol
	Counters []Counter
}

// Counter is a named amount in a counter set.
type Counter struct {
	Name   Symbol
	Amount Amount
}

// Taint is a taint of a device.
type Taint struct {
	Key, Value, Effect Symbol
}

var (
	effectNoSchedule = Intern(string(resourcev1.DeviceTaintEffectNoSchedule))
	effectNoExecute  = Intern(string(resourcev1.DeviceTaintEffectNoExecute))
)

// KeepsOff says whether the taint keeps claims without tolerations off the device. Effect None is information only, and
// an effect that is not known must be taken for it (resource.k8s.io/v1 DeviceTaintEffect).
func (t Taint) KeepsOff() bool {
	return t.Effect == effectNoSchedule || t.Effect == effectNoExecute
}

// CELDevice is a device as a CEL selector sees it. It converts to k8s.io/dynamic-resource-allocation/cel.Device, which
// has the same fields; this package does without the CEL libraries.
type CELDevice struct {
	Driver                   string
	AllowMultipleAllocations *bool
	Attributes               map[resourcev1.QualifiedName]resourcev1.DeviceAttribute
	Capacity                 map[resourcev1.QualifiedName]resourcev1.DeviceCapacity
}

// CEL is the device of a driver as a CEL selector sees it.
//
// A bare name belongs to the driver's domain. Where a device publishes both forms of one name, CEL would read the one
// that a map happens to yield last: the bare one is left out, so that the qualified one always wins.
func (d *Device) CEL(driver string) CELDevice {
	device := CELDevice{
		Driver:                   driver,
		AllowMultipleAllocations: new(d.Shared),
		Attributes:               make(map[resourcev1.QualifiedName]resourcev1.DeviceAttribute, len(d.Attributes)),
		Capacity:                 make(map[resourcev1.QualifiedName]resourcev1.DeviceCapacity, len(d.Capacity)),
	}
	for _, a := range d.Attributes {
		device.Attributes[resourcev1.QualifiedName(a.Name())] = a.Value()
	}
	for _, c := range d.Capacity {
		device.Capacity[resourcev1.QualifiedName(c.Name())] = resourcev1.DeviceCapacity{Value: c.Amount().Quantity()}
	}
	dropShadowed(device.Attributes, driver)
	dropShadowed(device.Capacity, driver)
	return device
}

// dropShadowed drops the bare names that are also there qualified with the driver's name.
func dropShadowed[V any](named map[resourcev1.QualifiedName]V, driver string) {
	for name := range named {
		if id, ours := strings.CutPrefix(string(name), driver+"/"); ours {
			delete(named, resourcev1.QualifiedName(id))
		}
	}
}

// attribute is the value of an attribute by its bare or qualified name, and whether the device has it. A qualified
// attribute wins over a bare one of the driver's domain, as in CEL.
func (d *Device) attribute(driver, name string) (attributeValue, bool) {
	id, ours := strings.CutPrefix(name, driver+"/")
	if ours || !strings.Contains(name, "/") {
		if value, found := d.published(driver + "/" + id); found {
			return value, true
		}
		return d.published(id)
	}
	return d.published(name)
}

func (d *Device) published(name string) (attributeValue, bool) {
	i, found := slices.BinarySearchFunc(d.Attributes, name, func(a Attribute, name string) int {
		return strings.Compare(a.Name(), name)
	})
	if !found {
		return attributeValue{}, false
	}
	return d.Attributes[i].get().value, true
}
