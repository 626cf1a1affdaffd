package fakedriver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// Finalizer is what a pod carries while the driver has devices prepared for it.
func (d *Driver) Finalizer() string { return d.options.Name + "/prepared" }

// syncPod prepares and unprepares the devices of one pod.
func (d *Driver) syncPod(ctx context.Context, key types.NamespacedName) error {
	object, exists, err := d.pods.GetByKey(key.String())
	if err != nil || !exists {
		return err
	}
	pod := object.(*corev1.Pod)
	node, err := d.nodes.Get(pod.Spec.NodeName)
	switch {
	case apierrors.IsNotFound(err):
		// With the node went its kubelet, and nobody unprepares anything any more.
		if d.holds(pod) && hasEnded(pod) {
			return d.unprepare(ctx, pod)
		}
		return nil
	case err != nil:
		return err
	}
	driverPod, alive := d.aliveOn(node)
	switch {
	case !alive:
		return nil
	case d.holds(pod) && hasEnded(pod):
		return d.unprepare(ctx, pod)
	case !d.holds(pod) && !hasEnded(pod):
		return d.prepare(ctx, pod, driverPod)
	}
	return nil
}

// prepare puts the finalizer on a pod that has a device of the driver.
func (d *Driver) prepare(ctx context.Context, pod, driverPod *corev1.Pod) error {
	var claims []string
	for name := range resourceclaim.PodClaims(pod) {
		claim, err := d.claims.ResourceClaims(pod.Namespace).Get(name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if resourceclaim.IsReservedForPod(pod, claim, true) && d.allocated(claim) {
			claims = append(claims, name)
		}
	}
	if len(claims) == 0 {
		return nil
	}
	driver, err := d.as(ctx, driverPod)
	if err != nil {
		return err
	}
	for _, name := range claims {
		// The cache has it; a driver reads it nevertheless, and needs the right to.
		if _, err := driver.ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("reading the claim to prepare: %w", err)
		}
	}
	d.options.Log.V(1).Info("Preparing devices", "driver", d.options.Name, "pod", pod.Name, "namespace", pod.Namespace)
	return d.patchFinalizers(ctx, pod, "finalizers")
}

func (d *Driver) unprepare(ctx context.Context, pod *corev1.Pod) error {
	d.options.Log.V(1).Info("Unpreparing devices", "driver", d.options.Name, "pod", pod.Name, "namespace", pod.Namespace)
	return d.patchFinalizers(ctx, pod, "$deleteFromPrimitiveList/finalizers")
}

// patchFinalizers adds or removes this driver's finalizer. A strategic merge patch treats the list as a set, so nobody
// else's entry is touched and no conflict is possible; the UID keeps it off a new pod of the same name.
func (d *Driver) patchFinalizers(ctx context.Context, pod *corev1.Pod, directive string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":     pod.UID,
		directive: []string{d.Finalizer()},
	}})
	if err != nil {
		return err
	}
	_, err = d.kubelet.CoreV1().Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// The pod is gone, or another one has its name. Events of the new one follow.
		return nil
	case apierrors.IsInvalid(err) && directive == "finalizers":
		// The pod was deleted in the meantime and takes no new finalizers: it never got its devices.
		return nil
	case err != nil:
		return fmt.Errorf("changing the finalizers of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// holds reports whether the driver has devices prepared for the pod.
func (d *Driver) holds(pod *corev1.Pod) bool { return slices.Contains(pod.Finalizers, d.Finalizer()) }

// allocated reports whether the claim has a device of this driver.
func (d *Driver) allocated(claim *resourcev1.ResourceClaim) bool {
	return claim.Status.Allocation != nil && slices.ContainsFunc(claim.Status.Allocation.Devices.Results,
		func(result resourcev1.DeviceRequestAllocationResult) bool { return result.Driver == d.options.Name })
}

func usesClaims(pod *corev1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
}

// hasEnded reports whether the pod needs its devices no longer. A kubelet unprepares when the containers have stopped
// and reports the terminal phase afterwards.
func hasEnded(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil ||
		pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed ||
		slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
			return status.State.Terminated != nil
		})
}
