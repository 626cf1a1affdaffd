package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	resourceac "k8s.io/client-go/applyconfigurations/resource/v1"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/catalog"
	"github.com/gpupool/gpupool-operator/internal/inventory"
	"github.com/gpupool/gpupool-operator/internal/selector"
)

// maxTemplateBytes is the largest template that is written. An API server stores 1.5 MiB with everything around it.
const maxTemplateBytes = 1 << 20

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
	// Server is what the API server can do.
	Server ServerFacts
}

// Profile is what is wanted for a WorkloadProfile.
type Profile struct {
	// TemplateName is the name of the profile's templates.
	TemplateName string
	// Selected are the namespaces that the profile selects, that exist and that may have the template, sorted.
	Selected []string
	// Missing are the namespaces that spec.namespaces.names lists and that do not exist, sorted.
	Missing []string
	// NotAllowed are the namespaces that the profile selects and that lack the label for adminAccess, sorted.
	NotAllowed []string
	// Refused is why the spec cannot be served; then Template is nil.
	Refused *Finding
	// Template is what each of Selected should have. It names no namespace.
	Template *resourceac.ResourceClaimTemplateApplyConfiguration
	// KeepOld is whether a published template that differs stays until somebody deletes it.
	KeepOld bool
	// Shares ask of each request and alternative on a pool whether it takes shared devices whole.
	Shares []inventory.ShareQuery
}

// ForProfile decides what is wanted for a WorkloadProfile.
func ForProfile(in ProfileInputs) Profile {
	spec := &in.Profile.Spec
	wanted := Profile{
		TemplateName: TemplateName(in.Profile),
		KeepOld:      spec.Template != nil && spec.Template.UpdatePolicy == v1alpha1.TemplateOnDelete,
	}
	var refused *Finding
	wanted.Selected, wanted.Missing, refused = selectNamespaces(spec.Namespaces, in.Namespaces)
	if refused != nil {
		wanted.Refused = refused
		return wanted
	}
	if asksAdminAccess(spec.Requests) {
		wanted.Selected, wanted.NotAllowed = splitAdminAccess(wanted.Selected, in.Namespaces)
	}
	wanted.Refused = in.render(&wanted)
	return wanted
}

func (in ProfileInputs) render(wanted *Profile) *Finding {
	claim, shares, refused := in.claim()
	if refused != nil {
		return refused
	}
	labels := map[string]string{v1alpha1.ProfileLabel: in.Profile.Name}
	template := resourceac.ResourceClaimTemplate(wanted.TemplateName, "").
		WithLabels(ChildLabels(v1alpha1.ProfileLabel, in.Profile.Name)).
		WithOwnerReferences(ownerReference(v1alpha1.WorkloadProfileKind, in.Profile.Name, in.Profile.UID)).
		WithSpec(&resourceac.ResourceClaimTemplateSpecApplyConfiguration{
			ObjectMetaApplyConfiguration: metaac.ObjectMeta().WithLabels(labels),
			Spec:                         resourceac.ResourceClaimSpec().WithDevices(claim),
		})
	template.Namespace = nil // the same template goes to every namespace
	content, err := json.Marshal(template)
	if err != nil {
		return finding(v1alpha1.ReasonInvalidSelector, "spec: the template cannot be rendered: %v", err)
	}
	if len(content) > maxTemplateBytes {
		return finding(v1alpha1.ReasonTemplateTooLarge,
			"spec: the rendered ResourceClaimTemplate has %d bytes, and at most %d are stored; shorten config and selectors",
			len(content), maxTemplateBytes)
	}
	wanted.Template, wanted.Shares = template, shares
	return nil
}

// claim renders what each pod gets. Every field that the API server would default is said, and requests keep the order
// of the profile, in which the scheduler's allocator searches.
func (in ProfileInputs) claim() (*resourceac.DeviceClaimApplyConfiguration, []inventory.ShareQuery, *Finding) {
	claim := resourceac.DeviceClaim()
	var shares []inventory.ShareQuery
	for i, request := range in.Profile.Spec.Requests {
		rendered, taken, refused := in.request(fmt.Sprintf("spec.requests[%d]", i), request)
		if refused != nil {
			return nil, nil, refused
		}
		claim.WithRequests(rendered)
		shares = append(shares, taken...)
	}
	for _, c := range in.Profile.Spec.Constraints {
		constraint := resourceac.DeviceConstraint().WithRequests(c.Requests...)
		if c.MatchAttribute != "" {
			constraint.WithMatchAttribute(resourcev1.FullyQualifiedName(c.MatchAttribute))
		}
		if c.DistinctAttribute != "" {
			constraint.WithDistinctAttribute(resourcev1.FullyQualifiedName(c.DistinctAttribute))
		}
		claim.WithConstraints(constraint)
	}
	for i, config := range in.Profile.Spec.Config {
		opaque, refused := opaqueConfig(fmt.Sprintf("spec.config[%d]", i), config.Opaque)
		if refused != nil {
			return nil, nil, refused
		}
		claim.WithConfig(resourceac.DeviceClaimConfiguration().
			WithRequests(in.configRequests(config.Requests)...).WithOpaque(opaque))
	}
	return claim, shares, nil
}

// configRequests names each alternative of a request that has any. The scheduler hands configuration on under the names
// that the claim gives, and drivers look for the name of the alternative that was allocated.
func (in ProfileInputs) configRequests(named []string) []string {
	var requests []string
	for _, name := range named {
		alternatives := []string{name}
		for _, request := range in.Profile.Spec.Requests {
			if request.Name == name && len(request.FirstAvailable) > 0 {
				alternatives = nil
				for _, alternative := range request.FirstAvailable {
					alternatives = append(alternatives, name+"/"+alternative.Name)
				}
			}
		}
		requests = append(requests, alternatives...)
	}
	return requests
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

func asksAdminAccess(requests []v1alpha1.DeviceRequest) bool {
	return slices.ContainsFunc(requests, func(r v1alpha1.DeviceRequest) bool {
		return r.Exactly != nil && r.Exactly.AdminAccess != nil && *r.Exactly.AdminAccess
	})
}

// splitAdminAccess tells the namespaces apart in which the API server accepts templates with adminAccess.
func splitAdminAccess(selected []string, existing []Namespace) (allowed, notAllowed []string) {
	labelled := map[string]bool{}
	for _, namespace := range existing {
		labelled[namespace.Name] = namespace.Labels[resourcev1.DRAAdminNamespaceLabelKey] == "true"
	}
	for _, name := range selected {
		if labelled[name] {
			allowed = append(allowed, name)
		} else {
			notAllowed = append(notAllowed, name)
		}
	}
	return allowed, notAllowed
}
