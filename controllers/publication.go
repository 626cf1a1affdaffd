package controllers

import (
	"context"
	"fmt"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/apply"
	"github.com/gpupool/gpupool-operator/internal/plan"
	"github.com/gpupool/gpupool-operator/internal/status"
)

var (
	deviceClassKind = resourcev1.SchemeGroupVersion.WithKind("DeviceClass")
	templateKind    = resourcev1.SchemeGroupVersion.WithKind("ResourceClaimTemplate")
)

// publication is how the children of an object stand after a reconcile.
type publication struct {
	// results are what became of the operations; empty if nothing was tried.
	results []apply.Result
	// stands is the reason of the published condition for each child that exists or is wanted.
	stands map[apply.Ref]status.Child
}

func ownerOf(kind, label, name string) apply.Owner {
	return apply.Owner{Kind: kind, Name: name, Labels: plan.ChildLabels(label, name)}
}

// keepAsIs neither writes nor prunes, for a spec that is not accepted: what the last accepted spec published stays.
func keepAsIs(owner apply.Owner, have []client.Object) publication {
	p := publication{stands: map[apply.Ref]status.Child{}}
	for _, object := range have {
		if owner.Owns(object) {
			p.stands[refOf(object)] = status.Child{Reason: v1alpha1.ReasonPublished}
		}
	}
	return p
}

// publish carries operations out.
func publish(ctx context.Context, writer *apply.Writer, operations []apply.Operation) publication {
	p := publication{stands: make(map[apply.Ref]status.Child, len(operations)), results: writer.Execute(ctx, operations)}
	for _, result := range p.results {
		p.stands[result.Ref] = childOf(result)
	}
	return p
}

// judge says how children stand without doing anything about it, for a suspended owner.
func judge(operations []apply.Operation) publication {
	p := publication{stands: make(map[apply.Ref]status.Child, len(operations))}
	for _, operation := range operations {
		p.stands[operation.Ref] = status.Child{Reason: whileSuspended(operation.Action)}
	}
	return p
}

func whileSuspended(action apply.Action) string {
	switch action {
	case apply.Keep:
		return v1alpha1.ReasonPublished
	case apply.Refuse:
		return v1alpha1.ReasonNameTaken
	case apply.Leave:
		return v1alpha1.ReasonOutOfDate
	}
	return v1alpha1.ReasonSuspended
}

// childOf says in the words of the API what became of an operation.
func childOf(result apply.Result) status.Child {
	if result.Dropped {
		return status.Child{Reason: v1alpha1.ReasonFeatureUnavailable}
	}
	if result.Outcome.Good() {
		return status.Child{Reason: v1alpha1.ReasonPublished}
	}
	clusterScoped := result.Namespace == ""
	switch result.Outcome {
	case apply.NameTaken:
		return status.Child{Reason: v1alpha1.ReasonNameTaken}
	case apply.OutOfDate:
		return status.Child{Reason: v1alpha1.ReasonOutOfDate}
	case apply.FeatureUnavailable:
		return status.Child{Reason: v1alpha1.ReasonFeatureUnavailable}
	case apply.Forbidden:
		if !clusterScoped {
			return status.Child{Reason: v1alpha1.ReasonForbidden}
		}
	case apply.Contended:
		if clusterScoped {
			return status.Child{Reason: v1alpha1.ReasonContended}
		}
	}
	return status.Child{Reason: v1alpha1.ReasonApplyFailed, Detail: detailOf(result.Err)}
}

// detailOf is what the API server says about an error. Connection errors hold ports and times, and conflicts mend
// themselves: neither belongs into a status.
func detailOf(err error) string {
	if apierrors.ReasonForError(err) == "" || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ""
	}
	return err.Error()
}

// child is how one wanted object stands.
func (p publication) child(ref apply.Ref) status.Child {
	if child, known := p.stands[ref]; known {
		return child
	}
	return status.Child{Reason: v1alpha1.ReasonNotAccepted}
}

// templates are how the templates of namespaces stand, in the order of the namespaces.
func (p publication) templates(name string, namespaces []string) []status.Child {
	children := make([]status.Child, 0, len(namespaces))
	for _, namespace := range namespaces {
		ref := apply.Ref{Kind: templateKind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
		children = append(children, p.child(ref))
	}
	return children
}

// result says when to look again: with backoff after a failure, at the time that an outcome names, or at the next
// event. The log gets the failures by name, which a status must not tell.
func (p publication) result(ctx context.Context) (ctrl.Result, error) {
	var next time.Duration
	var failed []apply.Result
	for _, result := range p.results {
		if result.Outcome == apply.Failed || result.Outcome == apply.Forbidden {
			failed = append(failed, result)
		}
		if result.RetryAfter > 0 && (next == 0 || result.RetryAfter < next) {
			next = result.RetryAfter
		}
	}
	if len(failed) > 0 {
		return ctrl.Result{}, failure(ctx, failed)
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

// loggedFailures is how many failures of one reconcile are logged by name: the same fault in two thousand namespaces is
// one fault.
const loggedFailures = 10

func failure(ctx context.Context, failed []apply.Result) error {
	log := ctrl.LoggerFrom(ctx)
	for _, result := range failed[:min(len(failed), loggedFailures)] {
		log.Info("Writing a child failed", result.Kind.Kind, klog.KRef(result.Namespace, result.Name),
			"outcome", result.Outcome, "reason", result.Err.Error())
	}
	return fmt.Errorf("writing %d children, the first of them %s: %w", len(failed), failed[0].Ref, failed[0].Err)
}

func refOf(object client.Object) apply.Ref {
	kind := deviceClassKind
	if object.GetNamespace() != "" {
		kind = templateKind
	}
	return apply.Ref{Kind: kind, NamespacedName: client.ObjectKeyFromObject(object)}
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Name: name}
}
