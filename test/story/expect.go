package story

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

// pool waits until a pool is Ready and has these device counts.
func (t teller) pool(ctx context.Context, name, want string) error {
	return until(ctx, func(ctx context.Context) error {
		pool := &v1alpha1.GpuPool{}
		if err := t.client.Get(ctx, client.ObjectKey{Name: name}, pool); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(pool.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("GpuPool %s is not Ready: %+v", name, pool.Status.Conditions)
		}
		got := "unset"
		if d := pool.Status.Devices; d != nil {
			got = fmt.Sprintf("%d total, %d allocated, %d available, %d unavailable", *d.Total, *d.Allocated, *d.Available, *d.Unavailable)
		}
		if got != want {
			return fmt.Errorf("GpuPool %s has devices: %s; expected %s", name, got, want)
		}
		return nil
	})
}

// claims waits until a pool has these claim counts.
func (t teller) claims(ctx context.Context, pool string, allocated, pending int32) error {
	return until(ctx, func(ctx context.Context) error {
		object := &v1alpha1.GpuPool{}
		if err := t.client.Get(ctx, client.ObjectKey{Name: pool}, object); err != nil {
			return err
		}
		c := object.Status.Claims
		if c == nil || *c.Allocated != allocated || *c.Pending != pending {
			return fmt.Errorf("GpuPool %s has claims %+v; expected %d allocated, %d pending", pool, c, allocated, pending)
		}
		return nil
	})
}

// profile waits until a profile is Ready and published in a number of namespaces.
func (t teller) profile(ctx context.Context, name string, namespaces int32) error {
	return until(ctx, func(ctx context.Context) error {
		profile := &v1alpha1.WorkloadProfile{}
		if err := t.client.Get(ctx, client.ObjectKey{Name: name}, profile); err != nil {
			return err
		}
		n := profile.Status.Namespaces
		if !meta.IsStatusConditionTrue(profile.Status.Conditions, v1alpha1.ConditionReady) || n == nil || *n.Published != namespaces {
			return fmt.Errorf("WorkloadProfile %s is not Ready in %d namespaces: %+v", name, namespaces, profile.Status)
		}
		return nil
	})
}

// running waits until a number of an application's pods run.
func (t teller) running(ctx context.Context, namespace, app string, want int) error {
	return until(ctx, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := t.client.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
			return err
		}
		got := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning && pods.Items[i].DeletionTimestamp == nil {
				got++
			}
		}
		if got != want {
			return fmt.Errorf("%d pods of %s/%s run; expected %d", got, namespace, app, want)
		}
		return nil
	})
}
