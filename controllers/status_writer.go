package controllers

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	v1alpha1ac "github.com/gpupool/gpupool-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// statusWriter is the only writer of the status of both kinds. It states the whole status, so that what is said no more
// disappears, and sends nothing that is there already. Events follow the write: they tell what became true.
type statusWriter struct {
	client client.StatusClient
	events announcer
}

func (w *statusWriter) writePool(
	ctx context.Context, pool *v1alpha1.GpuPool, wanted v1alpha1.GpuPoolStatus, published publication,
) error {
	if !equality.Semantic.DeepEqual(pool.Status, wanted) {
		body := &v1alpha1ac.GpuPoolStatusApplyConfiguration{}
		if err := convert(wanted, body); err != nil {
			return err
		}
		if err := w.apply(ctx, v1alpha1ac.GpuPool(pool.Name).WithUID(pool.UID).WithStatus(body)); err != nil {
			return err
		}
	}
	w.events.announce(pool, pool.Status.Conditions, wanted.Conditions, published.results)
	return nil
}

func (w *statusWriter) writeProfile(
	ctx context.Context, profile *v1alpha1.WorkloadProfile, wanted v1alpha1.WorkloadProfileStatus, published publication,
) error {
	if !equality.Semantic.DeepEqual(profile.Status, wanted) {
		body := &v1alpha1ac.WorkloadProfileStatusApplyConfiguration{}
		if err := convert(wanted, body); err != nil {
			return err
		}
		if err := w.apply(ctx, v1alpha1ac.WorkloadProfile(profile.Name).WithUID(profile.UID).WithStatus(body)); err != nil {
			return err
		}
	}
	w.events.announce(profile, profile.Status.Conditions, wanted.Conditions, published.results)
	return nil
}

// apply sends a status. The uid in it makes the request fail if the object was deleted and made again meanwhile; that
// one has an event of its own, so the failure is nobody's business.
func (w *statusWriter) apply(ctx context.Context, object runtime.ApplyConfiguration) error {
	err := w.client.Status().Apply(ctx, object, client.FieldOwner(v1alpha1.StatusFieldManager), client.ForceOwnership)
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	return nil
}

// convert turns a status into its apply configuration, which says exactly the fields that are set.
func convert(status, into any) error {
	content, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encoding status: %w", err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("decoding status: %w", err)
	}
	return nil
}
