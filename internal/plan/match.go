package plan

import (
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/gpupool/gpupool-operator/internal/inventory"
	"github.com/gpupool/gpupool-operator/internal/selector"
)

// matchesAll matches the devices that every selector matches, in the order of the selectors and no further than the
// first that does not match, as the scheduler does: the driver test comes first and shields what follows.
type matchesAll []*selector.Compiled

// Matches implements inventory.DeviceMatcher.
func (selectors matchesAll) Matches(driver string, device *inventory.Device) (bool, error) {
	view := dracel.Device(device.CEL(driver))
	for _, s := range selectors {
		if matches, err := s.Matches(view); err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}
