package plan

import (
	"strings"
	"unicode/utf8"

	resourceac "k8s.io/client-go/applyconfigurations/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/gpupool/gpupool-operator/internal/inventory"
	"github.com/gpupool/gpupool-operator/internal/selector"
)

// criterion is one selector of a class or request.
type criterion struct {
	rule
	compiled *selector.Compiled
}

// criteria match the devices that every selector matches, in the order of the selectors and no further than the first
// that does not match, as the scheduler does: the driver test comes first and shields what follows.
type criteria []criterion

// selectors are the criteria as they stand in a DeviceClass or a request.
func (c criteria) selectors() []*resourceac.DeviceSelectorApplyConfiguration {
	selectors := make([]*resourceac.DeviceSelectorApplyConfiguration, 0, len(c))
	for i := range c {
		expression := resourceac.CELDeviceSelector().WithExpression(c[i].compiled.Expression())
		selectors = append(selectors, resourceac.DeviceSelector().WithCEL(expression))
	}
	return selectors
}

// Judge implements inventory.DeviceMatcher.
func (c criteria) Judge(driver string, device *inventory.Device) inventory.Verdict {
	view := dracel.Device(device.CEL(driver))
	for i := range c {
		matches, err := c[i].compiled.Matches(view)
		switch {
		case err != nil:
			return inventory.Verdict{Selector: i, Failure: err.Error()}
		case !matches && c[i].reading != nil:
			return inventory.Verdict{Selector: i, Value: c[i].reading.value(view)}
		case !matches:
			return inventory.Verdict{Selector: i}
		}
	}
	return inventory.Verdict{Matches: true}
}

// Exclusion says how many devices a field keeps out that the fields before it let through.
type Exclusion struct {
	// Field is the path of the field below spec.
	Field   string
	Devices int
	// Detail is what comes nearest, or why nothing does; empty if there is nothing to say.
	Detail string
}

// detailLength is the longest detail (ExcludedDevices.Detail), in bytes.
const detailLength = 256

// Explain says which fields keep devices out, in the order of the selectors.
func (p Pool) Explain(excluded []inventory.Exclusion) []Exclusion {
	var explained []Exclusion
	for i, criterion := range p.criteria {
		exclusion := Exclusion{Field: "devices." + criterion.field}
		values, absent, failure := map[string]int{}, 0, ""
		for _, e := range excluded {
			if e.Selector != i {
				continue
			}
			exclusion.Devices += e.Devices
			switch {
			case e.Failure != "":
				failure = e.Failure
			case e.Value != "":
				values[e.Value] += e.Devices
			default:
				absent += e.Devices
			}
		}
		if exclusion.Devices > 0 {
			exclusion.Detail = criterion.detail(values, absent, failure)
			explained = append(explained, exclusion)
		}
	}
	return explained
}

func (c criterion) detail(values map[string]int, absent int, failure string) string {
	var parts []string
	if failure != "" {
		parts = append(parts, "the expression fails: "+failure)
	}
	if c.reading != nil && len(values) > 0 {
		parts = append(parts, c.reading.nearest(values))
	}
	if c.reading != nil && absent > 0 && c.reading.absent() != "" {
		parts = append(parts, c.reading.absent())
	}
	detail := strings.Join(parts, "; ")
	for len(detail) > detailLength {
		_, size := utf8.DecodeLastRuneInString(detail)
		detail = detail[:len(detail)-size]
	}
	return detail
}
