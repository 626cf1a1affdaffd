package plan

import (
	corev1 "k8s.io/api/core/v1"
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
}

// Pool is what is wanted for a GpuPool.
type Pool struct {
	// ClassName is the name of the pool's DeviceClass.
	ClassName string
	// Refused is why the spec cannot be served; then Class and Query are nil.
	Refused *Finding
	// Class is the DeviceClass that is wanted.
	Class *resourceac.DeviceClassApplyConfiguration
	// Query counts the devices that the class selects on the nodes of the pool.
	Query *inventory.PoolQuery
}

// ForPool decides what is wanted for a GpuPool.
func ForPool(in PoolInputs) Pool {
	spec := &in.Pool.Spec
	wanted := Pool{ClassName: ClassName(in.Pool)}
	entry := in.Catalog.Entry(spec.Driver.Name)
	compiled, refused := selection{spec.Driver.Name, entry, in.Compiler}.forPool(spec.Devices)
	if refused != nil {
		wanted.Refused = refused
		return wanted
	}
	nodes, err := nodeMatcher(spec.Nodes)
	if err != nil {
		wanted.Refused = finding(v1alpha1.ReasonInvalidSelector, "spec.nodes.selectorTerms: %v", err)
		return wanted
	}
	wanted.Class = deviceClass(in.Pool, wanted.ClassName, compiled)
	wanted.Query = &inventory.PoolQuery{
		Driver:    spec.Driver.Name,
		ClassName: wanted.ClassName,
		Nodes:     nodes,
		Devices:   matchesAll(compiled),
	}
	if entry != nil {
		wanted.Query.CardKeys = inventory.CardKeys(entry.Cards)
	}
	return wanted
}

func deviceClass(
	pool *v1alpha1.GpuPool, name string, compiled []*selector.Compiled,
) *resourceac.DeviceClassApplyConfiguration {
	return resourceac.DeviceClass(name).
		WithLabels(ChildLabels(v1alpha1.PoolLabel, pool.Name)).
		WithOwnerReferences(ownerReference(v1alpha1.GpuPoolKind, pool.Name, pool.UID)).
		WithSpec(resourceac.DeviceClassSpec().WithSelectors(deviceSelectors(compiled)...))
}

func deviceSelectors(compiled []*selector.Compiled) []*resourceac.DeviceSelectorApplyConfiguration {
	selectors := make([]*resourceac.DeviceSelectorApplyConfiguration, 0, len(compiled))
	for _, c := range compiled {
		expression := resourceac.CELDeviceSelector().WithExpression(c.Expression())
		selectors = append(selectors, resourceac.DeviceSelector().WithCEL(expression))
	}
	return selectors
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
