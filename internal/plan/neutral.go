package plan

import (
	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/catalog"
	"github.com/gpupool/gpupool-operator/internal/selector"
)

// neutral are the rules of the fields that mean the same for every driver, in the words of the catalogue.
func (s selection) neutral(path string, devices *v1alpha1.DeviceSelector) ([]rule, *Finding) {
	known := catalog.Properties{}
	if s.entry != nil {
		known = s.entry.Properties
	}
	n := neutralRules{selection: s, path: path}
	n.text("models", devices.Models, known.Model)
	n.text("architectures", devices.Architectures, known.Architecture)
	n.text("partitionProfiles", devices.PartitionProfiles, known.PartitionProfile)
	n.memory(devices.Memory, known.Memory)
	n.version("cudaComputeCapability", devices.CUDAComputeCapability, known.CUDAComputeCapability)
	n.version("gpuDriverVersion", devices.GPUDriverVersion, known.GPUDriverVersion)
	n.sharing(devices.Sharing)
	return n.rules, n.refused
}

// neutralRules collects rules until a field is refused.
type neutralRules struct {
	selection
	path    string
	rules   []rule
	refused *Finding
}

func (n *neutralRules) add(field, expression string, reading reading) {
	n.rules = append(n.rules, rule{field: field, expression: expression, reading: reading})
}

// refuse refuses a field that the driver's entry lacks, unless another one is refused already.
func (n *neutralRules) refuse(field, instead, example string) {
	if n.refused != nil {
		return
	}
	n.refused = finding(v1alpha1.ReasonUnknownDeviceProperty,
		"%s.%s: the operator does not know how driver %q publishes it, if at all; use devices.%s instead, for example %s",
		n.path, field, n.driver, instead, example)
}

func (n *neutralRules) text(field string, patterns []string, property *catalog.StringProperty) {
	if len(patterns) == 0 {
		return
	}
	if property == nil {
		n.refuse(field, "attributes", "{name: model, operator: In, values: [...]}")
		return
	}
	name := selector.ParseName(property.Attribute, n.driver)
	read := stringReading{name: name, wanted: patterns, since: property.Since}
	expression := selector.StringMatches(name, patterns...)
	if len(property.Joined) == 2 {
		read.joined = []selector.Name{
			selector.ParseName(property.Joined[0], n.driver), selector.ParseName(property.Joined[1], n.driver),
		}
		expression = selector.AnyOf(expression, selector.JoinedMatches(read.joined[0], read.joined[1], patterns...))
	}
	n.add(field, expression, read)
}

func (n *neutralRules) memory(bounds *v1alpha1.QuantityRange, property *catalog.CapacityProperty) {
	if bounds == nil {
		return
	}
	if property == nil {
		n.refuse("memory", "capacity", "{name: memory, min: 16Gi}")
		return
	}
	read := quantityReading{min: bounds.Min, max: bounds.Max}
	for _, capacity := range property.Capacities {
		read.names = append(read.names, selector.ParseName(capacity, n.driver))
	}
	expression := selector.CapacityBetween(read.names, bounds.Min, bounds.Max)
	if property.Unless != "" {
		unless := selector.ParseName(property.Unless, n.driver)
		read.unless = &unless
		expression = selector.All(selector.Not(selector.HasAttribute(unless)), expression)
	}
	n.add("memory", expression, read)
}

func (n *neutralRules) version(field string, bounds *v1alpha1.VersionRange, property *catalog.VersionProperty) {
	if bounds == nil {
		return
	}
	if property == nil {
		n.refuse(field, "attributes", "{name: driverVersion, type: Version, operator: AtLeast, values: [...]}")
		return
	}
	read := versionReading{name: selector.ParseName(property.Attribute, n.driver), since: property.Since}
	var err error
	if read.min, err = optionalVersion(bounds.Min); err == nil {
		read.max, err = optionalVersion(bounds.Max)
	}
	if err != nil {
		if n.refused == nil {
			n.refused = finding(v1alpha1.ReasonInvalidSelector, "%s.%s: %v", n.path, field, err)
		}
		return
	}
	n.add(field, selector.VersionBetween(read.name, read.min, read.max), read)
}

// sharing needs CEL that servers without the feature refuse. There no device is shared: every one is Exclusive, and
// asking for Shared is a question for the server's settings.
func (n *neutralRules) sharing(sharing v1alpha1.DeviceSharing) {
	switch {
	case n.refused != nil || sharing == "":
	case sharing == v1alpha1.SharingExclusive && n.server.SharedDevices:
		n.add("sharing", selector.Not(selector.Shared()), sharingReading{})
	case sharing == v1alpha1.SharingShared && n.server.SharedDevices:
		n.add("sharing", selector.Shared(), sharingReading{})
	case sharing == v1alpha1.SharingShared:
		n.refused = finding(v1alpha1.ReasonFeatureUnavailable,
			"%s.sharing: this cluster has no shared devices; switch on the feature gate DRAConsumableCapacity, "+
				"or leave sharing unset", n.path)
	}
}

// optionalVersion is nil for no text.
func optionalVersion(text string) (*selector.Version, error) {
	if text == "" {
		return nil, nil
	}
	parsed, err := selector.ParseVersion(text)
	return &parsed, err
}
