package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/apply"
)

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// announcer turns real changes into events: children that were written, and Ready or Stalled that changed. A reconcile
// that changes nothing is silent.
type announcer struct {
	recorder events.EventRecorder
}

// written are the outcomes that are worth an event, in the order in which they are told.
var written = []apply.Outcome{apply.Created, apply.Updated, apply.Replaced, apply.Deleted}

func (a announcer) announce(object client.Object, before, after []metav1.Condition, results []apply.Result) {
	for _, outcome := range written {
		a.announceChildren(object, outcome, results)
	}
	for _, conditionType := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionStalled} {
		old, now := meta.FindStatusCondition(before, conditionType), meta.FindStatusCondition(after, conditionType)
		if now == nil || old != nil && old.Status == now.Status && old.Reason == now.Reason {
			continue
		}
		eventType := corev1.EventTypeNormal
		if now.Type == v1alpha1.ConditionStalled {
			eventType = corev1.EventTypeWarning
		}
		a.recorder.Eventf(object, nil, eventType, now.Reason, "Reconcile", "%s is %s. %s", now.Type, now.Status, now.Message)
	}
}

// announceChildren tells of all children with one outcome at once: a profile may write thousands of equal templates.
func (a announcer) announceChildren(object client.Object, outcome apply.Outcome, results []apply.Result) {
	count := 0
	var last apply.Ref
	for _, result := range results {
		if result.Outcome == outcome {
			count++
			last = result.Ref
		}
	}
	reason := last.Kind.Kind + string(outcome)
	switch {
	case count == 0:
	case last.Namespace == "":
		a.recorder.Eventf(object, nil, corev1.EventTypeNormal, reason, string(outcome), "%s %s %q",
			outcome, last.Kind.Kind, last.Name)
	default:
		a.recorder.Eventf(object, nil, corev1.EventTypeNormal, reason, string(outcome), "%s %s %q in %d namespaces",
			outcome, last.Kind.Kind, last.Name, count)
	}
}
