package inventory

import "slices"

// takesWholeDevice is whether some shared device that the request matches has a capacity of which the request names no
// amount and the driver's default takes all. Nobody then shares that device with the claim.
func takesWholeDevice(w world, query ShareQuery) bool {
	for _, pool := range resourcePools(w.slices, Intern(query.Driver)) {
		if pool.incomplete != "" {
			continue
		}
		for _, slice := range pool.slices {
			for i := range slice.Devices {
				device := &slice.Devices[i]
				if device.Shared && query.leavesNothing(device) && query.matches(device) {
					return true
				}
			}
		}
	}
	return false
}

func (q ShareQuery) leavesNothing(device *Device) bool {
	return slices.ContainsFunc(device.Capacity, func(c Capacity) bool {
		return c.get().wholeByDefault && !slices.Contains(q.Requested, c.Name())
	})
}

func (q ShareQuery) matches(device *Device) bool {
	for _, matcher := range []DeviceMatcher{q.Devices, q.Narrowing} {
		if matcher != nil && !matcher.Judge(q.Driver, device).Matches {
			return false
		}
	}
	return true
}
