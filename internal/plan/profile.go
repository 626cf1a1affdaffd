package plan

import (
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	resourceac "k8s.io/client-go/applyconfigurations/resource/v1"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/catalog"
	"github.com/gpupool/gpupool-operator/internal/selector"
)

// ProfileInputs is all that decides what is wanted for a WorkloadProfile.
type ProfileInputs struct {
	// Profile is the profile itself.
	Profile *v1alpha1.WorkloadProfile
	// Pools are the GpuPools that exist, by name; at least those that the profile names.
	Pools map[string]PoolFacts
	// Namespaces are the namespaces that exist, terminating ones left out, sorted by name.
	Namespaces []Namespace
	// Catalog knows the drivers.
	Catalog *catalog.Catalog
	// Compiler compiles device selectors.
	Compiler *selector.Compiler
}

// PoolFacts is what a profile needs to know of a GpuPool.
type PoolFacts struct {
	// Driver is the pool's driver.
	Driver string
	// ClassName is the name of the pool's DeviceClass.
	ClassName string
	// Published is whether a DeviceClass of that name exists and is the pool's.
	Published bool
}

// Namespace is a namespace that templates can be written to.
type Namespace struct {
	Name   string
	Labels labels.Set
}

// Profile is what is wanted for a WorkloadProfile.
type Profile struct {
	// TemplateName is the name of the profile's templates.
	TemplateName string
	// Selected are the namespaces that the profile selects and that exist, sorted.
	Selected []string
	// Missing are the namespaces that spec.namespaces.names lists and that do not exist, sorted.
	Missing []string
	// Refused is why the spec cannot be served; then Template is nil.
	Refused *Finding
	// Template is what each of Selected should have. It names no namespace.
	Template *resourceac.ResourceClaimTemplateApplyConfiguration
}

// ForProfile decides what is wanted for a WorkloadProfile.
func ForProfile(in ProfileInputs) Profile {
	wanted := Profile{TemplateName: TemplateName(in.Profile)}
	var refused *Finding
	wanted.Selected, wanted.Missing, refused = selectNamespaces(in.Profile.Spec.Namespaces, in.Namespaces)
	if refused != nil {
		wanted.Refused = refused
		return wanted
	}
	spec, refused := claimTemplateSpec(in)
	if refused != nil {
		wanted.Refused = refused
		return wanted
	}
	wanted.Template = resourceac.ResourceClaimTemplate(wanted.TemplateName, "").
		WithLabels(ChildLabels(v1alpha1.ProfileLabel, in.Profile.Name)).
		WithOwnerReferences(ownerReference(v1alpha1.WorkloadProfileKind, in.Profile.Name, in.Profile.UID)).
		WithSpec(spec)
	wanted.Template.Namespace = nil // the same template goes to every namespace
	return wanted
}

// claimTemplateSpec renders the spec of the template. Every field that the API server would
// default is said, and requests keep the order of the profile, in which the scheduler's allocator searches.
func claimTemplateSpec(in ProfileInputs) (*resourceac.ResourceClaimTemplateSpecApplyConfiguration, *Finding) {
	devices := resourceac.DeviceClaim()
	for i, request := range in.Profile.Spec.Requests {
		rendered, refused := in.request(fmt.Sprintf("spec.requests[%d]", i), request)
		if refused != nil {
			return nil, refused
		}
		devices.WithRequests(rendered)
	}
	claim := metaac.ObjectMeta().WithLabels(map[string]string{v1alpha1.ProfileLabel: in.Profile.Name})
	return &resourceac.ResourceClaimTemplateSpecApplyConfiguration{
		ObjectMetaApplyConfiguration: claim,
		Spec:                         resourceac.ResourceClaimSpec().WithDevices(devices),
	}, nil
}

func (in ProfileInputs) request(
	path string, request v1alpha1.DeviceRequest,
) (*resourceac.DeviceRequestApplyConfiguration, *Finding) {
	exactly := request.Exactly
	if exactly == nil {
		return nil, finding(v1alpha1.ReasonInvalidSelector, "%s: exactly must be set", path)
	}
	pool, refused := in.pool(path+".exactly.poolName", exactly.PoolName)
	if refused != nil {
		return nil, refused
	}
	narrowing := selection{pool.Driver, in.Catalog.Entry(pool.Driver), in.Compiler}
	compiled, refused := narrowing.forRequest(path+".exactly.devices", exactly.Devices)
	if refused != nil {
		return nil, refused
	}
	rendered := resourceac.ExactDeviceRequest().
		WithDeviceClassName(pool.ClassName).
		WithSelectors(deviceSelectors(compiled)...)
	if exactly.AllocationMode == v1alpha1.AllocationAll {
		rendered.WithAllocationMode(resourcev1.DeviceAllocationModeAll)
	} else {
		rendered.WithAllocationMode(resourcev1.DeviceAllocationModeExactCount).WithCount(int64(max(exactly.Count, 1)))
	}
	return resourceac.DeviceRequest().WithName(request.Name).WithExactly(rendered), nil
}

// pool is a pool that a request may take from. What is missing may still come: Git has no order.
func (in ProfileInputs) pool(path, name string) (PoolFacts, *Finding) {
	pool, exists := in.Pools[name]
	if !exists {
		return pool, finding(v1alpha1.ReasonPoolNotFound, "%s: GpuPool %q does not exist; waiting for it", path, name)
	}
	if !pool.Published {
		return pool, finding(v1alpha1.ReasonPoolNotPublished,
			"%s: GpuPool %q has not published DeviceClass %q; see its conditions", path, name, pool.ClassName)
	}
	return pool, nil
}

// selectNamespaces is the union of the listed namespaces and those whose labels match. Listed ones that do not exist
// are returned apart.
func selectNamespaces(
	spec v1alpha1.NamespaceSelector, existing []Namespace,
) (selected, missing []string, refused *Finding) {
	byLabels, err := metav1.LabelSelectorAsSelector(spec.Selector) // nil selects nothing
	if err != nil {
		return nil, nil, finding(v1alpha1.ReasonInvalidSelector, "spec.namespaces.selector: %v", err)
	}
	listed := map[string]bool{}
	for _, name := range spec.Names {
		listed[name] = true
	}
	for _, namespace := range existing {
		if listed[namespace.Name] || byLabels.Matches(namespace.Labels) {
			selected = append(selected, namespace.Name)
			delete(listed, namespace.Name)
		}
	}
	return selected, slices.Sorted(maps.Keys(listed)), nil
}

// SelectsNamespace says whether a profile selects a namespace with these labels. A selector that does not parse selects
// nothing.
func SelectsNamespace(profile *v1alpha1.WorkloadProfile, name string, namespaceLabels map[string]string) bool {
	selected, _, refused := selectNamespaces(profile.Spec.Namespaces, []Namespace{{Name: name, Labels: namespaceLabels}})
	return refused == nil && len(selected) == 1
}
