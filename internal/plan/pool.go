package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourceac "k8s.io/client-go/applyconfigurations/resource/v1"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/catalog"
	"github.com/gpupool/gpupool-operator/internal/inventory"
	"github.com/gpupool/gpupool-operator/internal/selector"
)

// PoolInputs is all that decides what is wanted for a GpuPool.
type PoolInputs struct {
	// Pool is the pool itself.
	Pool *v1alpha1.GpuPool
	// Catalog knows the drivers.
	Catalog *catalog.Catalog
	// Compiler compiles device selectors.
	Compiler *selector.Compiler
	// Server is what the API server can do.
	Server ServerFacts
	// Classes are all DeviceClasses that have an extended resource name, and Pools all GpuPools that want one, by name.
	Classes []ClassFacts
	Pools   map[string]PoolFacts
}

// Pool is what is wanted for a GpuPool.
type Pool struct {
	// ClassName is the name of the pool's DeviceClass.
	ClassName string
	// Refused is why the spec cannot be served; then Class and Query are nil.
	Refused *Finding
	// WithoutName is why the class is wanted without the extended resource name that the spec asks for; nil if it is
	// wanted as the spec says.
	WithoutName *Finding
	// Class is the DeviceClass that is wanted.
	Class *resourceac.DeviceClassApplyConfiguration
	// Query counts the devices that the class selects on the nodes of the pool.
	Query *inventory.PoolQuery

	criteria criteria
}

// ForPool decides what is wanted for a GpuPool.
func ForPool(in PoolInputs) Pool {
	wanted := Pool{ClassName: ClassName(in.Pool)}
	if refused := in.plan(&wanted); refused != nil {
		return Pool{ClassName: wanted.ClassName, Refused: refused}
	}
	return wanted
}

func (in PoolInputs) plan(wanted *Pool) *Finding {
	spec := &in.Pool.Spec
	entry := in.Catalog.Entry(spec.Driver.Name)
	s := selection{spec.Driver.Name, entry, in.Compiler, in.Server}
	var refused *Finding
	if wanted.criteria, refused = s.forPool(spec.Devices); refused != nil {
		return refused
	}
	nodes, err := nodeMatcher(spec.Nodes)
	if err != nil {
		return finding(v1alpha1.ReasonInvalidSelector, "spec.nodes.selectorTerms: %v", err)
	}
	if refused := s.checkClassName(spec.Devices, wanted.ClassName); refused != nil {
		return refused
	}
	class, refused := in.deviceClass(wanted)
	if refused != nil {
		return refused
	}
	wanted.Class = class
	wanted.Query = &inventory.PoolQuery{
		Driver:    spec.Driver.Name,
		ClassName: wanted.ClassName,
		Nodes:     nodes,
		Devices:   wanted.criteria,
	}
	if entry != nil {
		wanted.Query.CardKeys = inventory.CardKeys(entry.Cards)
		if model := entry.Properties.Model; model != nil {
			wanted.Query.Model = model.Attribute
		}
	}
	return nil
}

// checkClassName refuses a name that the driver would not recognise.
func (s selection) checkClassName(devices *v1alpha1.PoolDevices, className string) *Finding {
	if s.entry == nil {
		return nil
	}
	var deviceType v1alpha1.DeviceType
	if devices != nil {
		deviceType = devices.Type
	}
	deviceType = s.typeOf(deviceType)
	if demanded := s.entry.Rules.DeviceClassNames[deviceType]; demanded != "" && demanded != className {
		return finding(v1alpha1.ReasonDeviceClassNameRequired,
			"spec.deviceClass.name: driver %q hands out %s devices only through a DeviceClass named %q; delete this GpuPool "+
				"and create it with that name (the field is immutable)", s.driver, deviceType, demanded)
	}
	return nil
}

func (in PoolInputs) deviceClass(wanted *Pool) (*resourceac.DeviceClassApplyConfiguration, *Finding) {
	spec := resourceac.DeviceClassSpec().WithSelectors(wanted.criteria.selectors()...)
	if class := in.Pool.Spec.DeviceClass; class != nil {
		for i, config := range class.Config {
			opaque, refused := opaqueConfig(fmt.Sprintf("spec.deviceClass.config[%d]", i), config.Opaque)
			if refused != nil {
				return nil, refused
			}
			spec.WithConfig(resourceac.DeviceClassConfiguration().WithOpaque(opaque))
		}
		if name := class.ExtendedResourceName; name != "" {
			own := ownClass{pool: in.Pool.Name, class: wanted.ClassName}
			if holder, mine := own.extendedResource(name, in.Classes, in.Pools); mine {
				spec.WithExtendedResourceName(name)
			} else {
				wanted.WithoutName = finding(v1alpha1.ReasonExtendedResourceNameTaken,
					"%s holds the extended resource name %q; DeviceClass %q is published without it; choose another "+
						"deviceClass.extendedResourceName, or take the name from there", holder, name, wanted.ClassName)
			}
		}
	}
	return resourceac.DeviceClass(wanted.ClassName).
		WithLabels(ChildLabels(v1alpha1.PoolLabel, in.Pool.Name)).
		WithOwnerReferences(ownerReference(v1alpha1.GpuPoolKind, in.Pool.Name, in.Pool.UID)).
		WithSpec(spec), nil
}

// opaqueConfig renders configuration for one driver.
func opaqueConfig(
	path string, opaque *v1alpha1.OpaqueDeviceConfig,
) (*resourceac.OpaqueDeviceConfigurationApplyConfiguration, *Finding) {
	if opaque == nil {
		return nil, finding(v1alpha1.ReasonInvalidSelector, "%s: opaque must be set", path)
	}
	if size := len(opaque.Parameters.Raw); size > resourcev1.OpaqueParametersMaxLength {
		return nil, finding(v1alpha1.ReasonParametersTooLarge, "%s.opaque.parameters: they have %d bytes as JSON, and "+
			"Kubernetes allows %d", path, size, resourcev1.OpaqueParametersMaxLength)
	}
	return resourceac.OpaqueDeviceConfiguration().WithDriver(opaque.Driver).WithParameters(opaque.Parameters), nil
}

// nodeMatcher compiles the terms that select nodes; nil selects all.
func nodeMatcher(nodes *v1alpha1.NodeSelection) (*inventory.NodeMatcher, error) {
	if nodes == nil || len(nodes.SelectorTerms) == 0 {
		return nil, nil
	}
	terms := make([]corev1.NodeSelectorTerm, 0, len(nodes.SelectorTerms))
	for _, term := range nodes.SelectorTerms {
		terms = append(terms, corev1.NodeSelectorTerm{
			MatchExpressions: nodeRequirements(term.MatchExpressions),
			MatchFields:      nodeRequirements(term.MatchFields),
		})
	}
	return inventory.NewNodeMatcher(terms)
}

func nodeRequirements(requirements []v1alpha1.NodeSelectorRequirement) []corev1.NodeSelectorRequirement {
	converted := make([]corev1.NodeSelectorRequirement, 0, len(requirements))
	for _, r := range requirements {
		converted = append(converted, corev1.NodeSelectorRequirement{
			Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Operator), Values: r.Values,
		})
	}
	return converted
}
