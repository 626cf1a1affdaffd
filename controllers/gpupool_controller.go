package controllers

import (
	"context"

	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/apply"
	"github.com/gpupool/gpupool-operator/internal/catalog"
	"github.com/gpupool/gpupool-operator/internal/inventory"
	"github.com/gpupool/gpupool-operator/internal/plan"
	"github.com/gpupool/gpupool-operator/internal/selector"
	"github.com/gpupool/gpupool-operator/internal/snapshot"
	"github.com/gpupool/gpupool-operator/internal/status"
)

// +kubebuilder:rbac:groups=gpupool.dev,resources=gpupools,verbs=get;list;watch
// +kubebuilder:rbac:groups=gpupool.dev,resources=gpupools/status,verbs=patch
// +kubebuilder:rbac:groups=resource.k8s.io,resources=deviceclasses,verbs=get;list;watch;create;patch;delete

// poolReconciler publishes the DeviceClass of a GpuPool and counts its devices.
type poolReconciler struct {
	cache     client.Reader
	reader    snapshot.Reader
	catalog   *catalog.Catalog
	compiler  *selector.Compiler
	inventory *inventory.Inventory
	children  *apply.Writer
	server    *server
	status    *statusWriter
	clock     clock.PassiveClock
}

// Reconcile makes one pool so. While a pool is being deleted nothing is written: its class goes by its owner reference,
// and making it again would keep it.
func (r *poolReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pool := &v1alpha1.GpuPool{}
	if err := r.cache.Get(ctx, request.NamespacedName, pool); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if pool.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}

	have, err := r.reader.Classes(ctx, pool.Name, plan.ClassName(pool))
	if err != nil {
		return ctrl.Result{}, err
	}
	wanted, err := r.plan(ctx, pool, have)
	if err != nil {
		return ctrl.Result{}, err
	}

	published, err := r.publish(ctx, pool, wanted, have)
	if err != nil {
		return ctrl.Result{}, err
	}

	err = r.status.writePool(ctx, pool, status.ForPool(status.PoolInputs{
		Pool:   pool,
		Plan:   wanted,
		Class:  published.child(apply.Ref{Kind: deviceClassKind, NamespacedName: key(wanted.ClassName)}),
		Counts: r.counts(wanted),
		Now:    r.clock.Now(),
	}), published)
	if err != nil {
		return ctrl.Result{}, err
	}
	return published.result(ctx)
}

func (r *poolReconciler) plan(ctx context.Context, pool *v1alpha1.GpuPool, have []client.Object) (plan.Pool, error) {
	inputs := plan.PoolInputs{Pool: pool, Catalog: r.catalog, Compiler: r.compiler}
	var err error
	if plan.PoolAsksForSharing(pool) {
		if inputs.Server, err = r.server.ask(ctx, have); err != nil {
			return plan.Pool{}, err
		}
	}
	if plan.FactsOf(pool).ExtendedResourceName != "" {
		if inputs.Classes, inputs.Pools, err = r.reader.ExtendedResources(ctx); err != nil {
			return plan.Pool{}, err
		}
	}
	return plan.ForPool(inputs), nil
}

func (r *poolReconciler) publish(
	ctx context.Context, pool *v1alpha1.GpuPool, wanted plan.Pool, have []client.Object,
) (publication, error) {
	owner := ownerOf(v1alpha1.GpuPoolKind, v1alpha1.PoolLabel, pool.Name)
	if wanted.Refused != nil {
		return keepAsIs(owner, have), nil
	}
	operations, err := apply.Compute(owner, []apply.Want{{Config: wanted.Class}}, have)
	if err != nil {
		return publication{}, err
	}
	if ptr.Deref(pool.Spec.Suspend, false) {
		return judge(operations), nil
	}
	return publish(ctx, r.children, operations), nil
}

// counts are nil while the inventory has not seen the whole cluster, and for a spec that says nothing countable.
func (r *poolReconciler) counts(wanted plan.Pool) *inventory.PoolCounts {
	if wanted.Query == nil {
		return nil
	}
	if counts, known := r.inventory.PoolCounts(*wanted.Query); known {
		return &counts
	}
	return nil
}
