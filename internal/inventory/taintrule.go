package inventory

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TaintRule is a DeviceTaintRule: a taint on every device that its selector matches.
type TaintRule struct {
	Name string
	// Selector is nil where the rule matches no device; a selector without fields matches every device of every driver.
	Selector *TaintSelector
	Taint    Taint
}

// TaintSelector selects devices. A field that is empty is no condition.
type TaintSelector struct {
	Driver, Pool, Device Symbol
}

func (*TaintRule) kind() Kind { return TaintRules }

// Key is the rule's name.
func (r *TaintRule) Key() types.NamespacedName { return types.NamespacedName{Name: r.Name} }

// FromTaintRule makes the compact form of a DeviceTaintRule.
func FromTaintRule(rule *resourcev1.DeviceTaintRule) *TaintRule {
	compact := &TaintRule{Name: rule.Name, Taint: newTaint(&rule.Spec.Taint)}
	if selector := rule.Spec.DeviceSelector; selector != nil {
		// The API server accepts names only, so that an empty one stands for no condition.
		compact.Selector = &TaintSelector{
			Driver: Intern(valueOf(selector.Driver)),
			Pool:   Intern(valueOf(selector.Pool)),
			Device: Intern(valueOf(selector.Device)),
		}
	}
	return compact
}

// matchesPool says whether the rule can match a device of a resource pool.
func (r *TaintRule) matchesPool(driver, pool Symbol) bool {
	return r.Selector != nil && isOrAny(r.Selector.Driver, driver) && isOrAny(r.Selector.Pool, pool)
}

// matchesDevice says whether a rule that matches a device's resource pool matches the device too.
func (r *TaintRule) matchesDevice(device Symbol) bool {
	return r.Selector != nil && isOrAny(r.Selector.Device, device)
}

func isOrAny(condition, name Symbol) bool {
	return condition == Symbol{} || condition == name
}
