package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/gpupool/gpupool-operator/internal/selector"
)

// reading is what a rule reads of a device. It tells what the devices have that the rule keeps out.
type reading interface {
	// value is what a device publishes, as text; empty if it publishes nothing that the rule reads.
	value(device dracel.Device) string
	// nearest says of values that do not satisfy the rule, with how many devices have each, which comes nearest to it.
	nearest(values map[string]int) string
	// absent says that devices publish nothing that the rule reads.
	absent() string
}

// stringReading reads an attribute that is wanted or not.
type stringReading struct {
	name   selector.Name
	joined []selector.Name
	wanted []string
	since  string
}

func (r stringReading) value(device dracel.Device) string {
	if text := attributeText(device, r.name); text != "" || len(r.joined) == 0 {
		return text
	}
	head, tail := attributeText(device, r.joined[0]), attributeText(device, r.joined[1])
	if head == "" || tail == "" {
		return ""
	}
	return head + "_" + tail
}

// nearest is the value that agrees longest with one that is wanted, of several the most frequent.
func (r stringReading) nearest(values map[string]int) string {
	best := slices.MaxFunc(byName(values), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.agreement(a), r.agreement(b)), cmp.Compare(values[a], values[b]))
	})
	return fmt.Sprintf("%s is %q", r.name.ID, best)
}

func (r stringReading) agreement(value string) int {
	longest := 0
	for _, w := range r.wanted {
		same := 0
		for same < min(len(w), len(value)) && w[same] == value[same] {
			same++
		}
		longest = max(longest, same)
	}
	return longest
}

func (r stringReading) absent() string { return notPublished(r.name.ID, r.since) }

// versionReading reads an attribute that has bounds.
type versionReading struct {
	name     selector.Name
	min, max *selector.Version
	since    string
}

func (r versionReading) value(device dracel.Device) string { return attributeText(device, r.name) }

func (r versionReading) nearest(values map[string]int) string {
	ordered := slices.SortedFunc(slices.Values(byName(values)), compareVersions)
	if below := ordered[len(ordered)-1]; r.min != nil && compareVersions(below, r.min.String()) < 0 {
		return fmt.Sprintf("%s is below %s", below, r.min)
	}
	if r.max != nil {
		return fmt.Sprintf("%s is above %s", ordered[0], r.max)
	}
	return fmt.Sprintf("%s is below %s", ordered[0], r.min)
}

func (r versionReading) absent() string { return notPublished(r.name.ID, r.since) }

// compareVersions orders versions, and what is none before them by its text.
func compareVersions(a, b string) int {
	left, leftErr := version.ParseGeneric(a)
	right, rightErr := version.ParseGeneric(b)
	if leftErr != nil || rightErr != nil {
		switch {
		case leftErr == nil:
			return 1
		case rightErr == nil:
			return -1
		}
		return strings.Compare(a, b)
	}
	order, _ := left.Compare(right.String())
	return order
}

// quantityReading reads the first of several capacities, and has bounds.
type quantityReading struct {
	names    []selector.Name
	unless   *selector.Name
	min, max *resource.Quantity
}

func (r quantityReading) value(device dracel.Device) string {
	if r.unless != nil && attributeText(device, *r.unless) != "" {
		return ""
	}
	for _, name := range r.names {
		if capacity, found := lookup(device.Capacity, name, device.Driver); found {
			return capacity.Value.String()
		}
	}
	return ""
}

func (r quantityReading) nearest(values map[string]int) string {
	ordered := make([]resource.Quantity, 0, len(values))
	for _, text := range byName(values) {
		if q, err := resource.ParseQuantity(text); err == nil {
			ordered = append(ordered, q)
		}
	}
	slices.SortFunc(ordered, func(a, b resource.Quantity) int { return a.Cmp(b) })
	for _, q := range slices.Backward(ordered) {
		if r.min != nil && q.Cmp(*r.min) < 0 {
			return fmt.Sprintf("%s is below %s", &q, r.min)
		}
	}
	return fmt.Sprintf("%s is above %s", &ordered[0], r.max)
}

func (r quantityReading) absent() string { return notPublished(r.names[0].ID, "") }

// sharingReading reads whether claims share the device.
type sharingReading struct{}

func (sharingReading) value(device dracel.Device) string {
	if device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations {
		return "shared"
	}
	return "taken whole"
}

func (sharingReading) nearest(values map[string]int) string {
	return "devices are " + strings.Join(byName(values), " or ")
}

func (sharingReading) absent() string { return "" }

func notPublished(name, since string) string {
	if since != "" {
		return fmt.Sprintf("%s is not published; drivers do since version %s", name, since)
	}
	return name + " is not published"
}

func byName(values map[string]int) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// attributeText is the value of an attribute as text, empty if the device does not publish it.
func attributeText(device dracel.Device, name selector.Name) string {
	attribute, found := lookup(device.Attributes, name, device.Driver)
	switch {
	case !found:
		return ""
	case attribute.StringValue != nil:
		return *attribute.StringValue
	case attribute.VersionValue != nil:
		return *attribute.VersionValue
	case attribute.IntValue != nil:
		return strconv.FormatInt(*attribute.IntValue, 10)
	case attribute.BoolValue != nil:
		return strconv.FormatBool(*attribute.BoolValue)
	}
	return "a list"
}

// lookup finds a name in its qualified form, and in its bare form if it is in the driver's domain.
func lookup[V any](published map[resourcev1.QualifiedName]V, name selector.Name, driver string) (V, bool) {
	value, found := published[resourcev1.QualifiedName(name.String())]
	if !found && name.Domain == driver {
		value, found = published[resourcev1.QualifiedName(name.ID)]
	}
	return value, found
}
