package source

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpupool/gpupool-operator/internal/inventory"
)

// decoder makes compact forms of API objects.
type decoder struct {
	// profileLabel is the one label of claims that is kept.
	profileLabel string
}

// decode makes the compact form of an API object. It is nil, without an error, for a pod that waits for nothing. An
// error is an object of a kind that the inventory does not hold.
func (d decoder) decode(object any) (inventory.Object, error) {
	switch o := object.(type) {
	case *resourcev1.ResourceSlice:
		return inventory.FromSlice(o), nil
	case *resourcev1.ResourceClaim:
		return inventory.FromClaim(o, d.profileLabel), nil
	case *corev1.Pod:
		if pod, waits := inventory.FromPod(o); waits {
			return pod, nil
		}
		return nil, nil
	case *corev1.Node:
		return inventory.FromNode(o), nil
	case *resourcev1.DeviceTaintRule:
		return inventory.FromTaintRule(o), nil
	}
	return nil, fmt.Errorf("%T is not an object of the inventory", object)
}
