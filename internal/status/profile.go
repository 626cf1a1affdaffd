package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/inventory"
	"github.com/gpupool/gpupool-operator/internal/plan"
)

// ProfileInputs is all that the status of a WorkloadProfile says.
type ProfileInputs struct {
	Profile *v1alpha1.WorkloadProfile
	Plan    plan.Profile
	// Templates are how the templates of Plan.Selected stand, in the same order.
	Templates []Child
	// TakeWhole is how many requests and alternatives take shared devices whole.
	TakeWhole int
	// Claims are the counts of the profile's claims; nil until the cluster has been read once.
	Claims *inventory.ClaimCounts
	Now    time.Time
}

// ForProfile is the whole status of a WorkloadProfile.
func ForProfile(in ProfileInputs) v1alpha1.WorkloadProfileStatus {
	failures := in.failures()
	status := v1alpha1.WorkloadProfileStatus{
		ObservedGeneration: in.Profile.Generation,
		TemplateName:       in.Plan.TemplateName,
		Namespaces:         in.namespaceCounts(failures),
	}
	if in.Claims != nil {
		status.Claims = claimCounts(*in.Claims)
	}
	if in.TakeWhole > 0 {
		status.Hazards = []v1alpha1.ReasonCount{{Reason: v1alpha1.HazardTakesWholeDevice, Count: *number(in.TakeWhole)}}
	}
	conditions := summarize(accepted(in.Plan.Refused), in.templatesPublished(failures))
	status.Conditions = settle(conditions, in.Profile.Status.Conditions, in.Profile.Generation, in.Now)
	return status
}

// failures counts the selected namespaces without the current template by reason, the largest count first, and what the
// spec asks to leave last.
func (in ProfileInputs) failures() []v1alpha1.ReasonCount {
	counts := map[string]int32{}
	for _, template := range in.Templates {
		if template.Reason != v1alpha1.ReasonPublished {
			counts[template.Reason]++
		}
	}
	if missing := len(in.Plan.Missing); missing > 0 {
		counts[v1alpha1.ReasonNamespaceNotFound] = *number(missing)
	}
	if notAllowed := len(in.Plan.NotAllowed); notAllowed > 0 {
		counts[v1alpha1.ReasonAdminAccessNotAllowed] = *number(notAllowed)
	}
	failures := make([]v1alpha1.ReasonCount, 0, len(counts))
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		failures = append(failures, v1alpha1.ReasonCount{Reason: reason, Count: counts[reason]})
	}
	slices.SortStableFunc(failures, func(a, b v1alpha1.ReasonCount) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Count, a.Count))
	})
	return failures
}

// rank puts what is meant to be so behind what is not.
func rank(failure v1alpha1.ReasonCount) int {
	if failure.Reason == v1alpha1.ReasonOutOfDate {
		return 1
	}
	return 0
}

func (in ProfileInputs) namespaceCounts(failures []v1alpha1.ReasonCount) *v1alpha1.NamespaceCounts {
	selected := in.selected()
	published := selected
	for _, failure := range failures {
		published -= int(failure.Count)
	}
	return &v1alpha1.NamespaceCounts{Selected: number(selected), Published: number(published), Failures: failures}
}

// selected is how many namespaces the profile selects, whether they may have the template or not.
func (in ProfileInputs) selected() int {
	return len(in.Plan.Selected) + len(in.Plan.Missing) + len(in.Plan.NotAllowed)
}

func (in ProfileInputs) templatesPublished(failures []v1alpha1.ReasonCount) verdict {
	const published = v1alpha1.ConditionTemplatesPublished
	switch {
	case in.selected() == 0 && in.Plan.Refused == nil:
		return isTrue(published, v1alpha1.ReasonNoNamespaces, "No namespace matches spec.namespaces")
	case len(failures) == 0 && in.Plan.Refused != nil:
		return isTrue(published, v1alpha1.ReasonPublished, "The templates stay as the last accepted spec made them")
	case len(failures) == 0:
		return isTrue(published, v1alpha1.ReasonPublished, "")
	}
	reason := failures[0].Reason
	if reason == v1alpha1.ReasonOutOfDate && len(failures) == 1 {
		return isTrue(published, reason, fmt.Sprintf("ResourceClaimTemplate %q is older than the spec in a selected "+
			"namespace; delete it there to have it made anew (updatePolicy is OnDelete)", in.Plan.TemplateName))
	}
	v := isFalse(published, reason, templateMessage(reason, in.Plan.TemplateName))
	// While any namespace may still heal by itself, waiting is worth it.
	v.stalled = !slices.ContainsFunc(failures, func(f v1alpha1.ReasonCount) bool {
		return !stalls[f.Reason] && f.Reason != v1alpha1.ReasonOutOfDate
	})
	return v
}

// templateMessage says what a reason means and what to do, without the namespaces: whoever may read a profile need
// not be allowed to know them.
func templateMessage(reason, template string) string {
	switch reason {
	case v1alpha1.ReasonNameTaken:
		return fmt.Sprintf("ResourceClaimTemplate %q belongs to somebody else in a selected namespace; delete it there, or "+
			"delete this WorkloadProfile and create it with another template.name (the field is immutable)", template)
	case v1alpha1.ReasonNamespaceNotFound:
		return "A namespace that spec.namespaces.names lists does not exist; waiting for it"
	case v1alpha1.ReasonForbidden:
		return fmt.Sprintf("Writing ResourceClaimTemplate %q is forbidden in a selected namespace, by authorization or by "+
			"an admission policy; the operator's log says where and why", template)
	case v1alpha1.ReasonAdminAccessNotAllowed:
		return "A selected namespace lacks the label resource.kubernetes.io/admin-access=true, without which Kubernetes " +
			"accepts no adminAccess there"
	case v1alpha1.ReasonFeatureUnavailable:
		return fmt.Sprintf("The API server would drop a part of ResourceClaimTemplate %q, because a feature is switched off "+
			"or not known there; nothing is written", template)
	case v1alpha1.ReasonSuspended:
		return fmt.Sprintf("ResourceClaimTemplate %q is not as the spec wants it, and suspend is true", template)
	case v1alpha1.ReasonNotAccepted:
		return fmt.Sprintf("ResourceClaimTemplate %q is not written while the spec is not accepted", template)
	}
	return fmt.Sprintf("Writing ResourceClaimTemplate %q failed in a selected namespace and is tried again; "+
		"the operator's log says where and why", template)
}
