package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

// verdict is a condition, and for one that is not True, whether only a user can mend it.
type verdict struct {
	metav1.Condition
	stalled bool
}

func isTrue(conditionType, reason, message string) verdict {
	return verdict{Condition: condition(conditionType, metav1.ConditionTrue, reason, message)}
}

// isFalse takes from the reason whether only a user can mend it.
func isFalse(conditionType, reason, message string) verdict {
	return verdict{Condition: condition(conditionType, metav1.ConditionFalse, reason, message), stalled: stalls[reason]}
}

func isUnknown(conditionType, reason, message string) verdict {
	return verdict{Condition: condition(conditionType, metav1.ConditionUnknown, reason, message)}
}

func condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

// stalls are the reasons that only a user can mend. All others mend themselves, or say that something may still come.
var stalls = map[string]bool{
	v1alpha1.ReasonInvalidSelector:           true,
	v1alpha1.ReasonUnknownDeviceProperty:     true,
	v1alpha1.ReasonDeviceClassNameRequired:   true,
	v1alpha1.ReasonAllocationModeRequired:    true,
	v1alpha1.ReasonParametersTooLarge:        true,
	v1alpha1.ReasonTemplateTooLarge:          true,
	v1alpha1.ReasonNameTaken:                 true,
	v1alpha1.ReasonExtendedResourceNameTaken: true,
	v1alpha1.ReasonAdminAccessNotAllowed:     true,
	v1alpha1.ReasonForbidden:                 true,
	v1alpha1.ReasonFeatureUnavailable:        true,
}

// summarize adds Ready, and Stalled or Reconciling while Ready is not True. Ready follows the first of the verdicts
// that is not True; it is Stalled if any of them is, since no waiting helps then.
func summarize(verdicts ...verdict) []metav1.Condition {
	conditions := make([]metav1.Condition, 0, len(verdicts)+2)
	var worst, stalled *verdict
	for i := range verdicts {
		v := &verdicts[i]
		conditions = append(conditions, v.Condition)
		if v.Status != metav1.ConditionTrue && worst == nil {
			worst = v
		}
		if v.stalled && stalled == nil {
			stalled = v
		}
	}
	switch {
	case worst == nil:
		return append(conditions, condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, ""))
	case stalled != nil:
		return append(conditions,
			condition(v1alpha1.ConditionReady, metav1.ConditionFalse, stalled.Reason, stalled.Message),
			condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, stalled.Reason, stalled.Message))
	}
	return append(conditions,
		condition(v1alpha1.ConditionReady, worst.Status, worst.Reason, worst.Message),
		condition(v1alpha1.ConditionReconciling, metav1.ConditionTrue, worst.Reason, worst.Message))
}

// settle gives conditions their generation, and the time of the present one of the same type and status, else now.
func settle(conditions, present []metav1.Condition, generation int64, now time.Time) []metav1.Condition {
	for i := range conditions {
		c := &conditions[i]
		c.ObservedGeneration = generation
		c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		if old := meta.FindStatusCondition(present, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	return conditions
}

// Child is how an object that is wanted stands in the cluster.
type Child struct {
	// Reason is ReasonPublished if the object is as wanted, else a documented reason why not.
	Reason string
	// Detail is what the API server said; empty if there is nothing to say. It is shown for cluster-scoped objects only.
	Detail string
}
