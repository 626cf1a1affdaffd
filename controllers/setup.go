package controllers

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/apply"
	"github.com/gpupool/gpupool-operator/internal/catalog"
	"github.com/gpupool/gpupool-operator/internal/inventory"
	"github.com/gpupool/gpupool-operator/internal/plan"
	"github.com/gpupool/gpupool-operator/internal/selector"
	"github.com/gpupool/gpupool-operator/internal/snapshot"
	"github.com/gpupool/gpupool-operator/internal/source"
)

// +kubebuilder:rbac:groups="",resources=nodes;pods,verbs=list;watch
// +kubebuilder:rbac:groups=resource.k8s.io,resources=resourceslices;resourceclaims;devicetaintrules,verbs=list;watch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,namespace=gpupool-system
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=gpupool-system

// rememberedSelectors is how many compiled selectors are kept: those of some hundred pools and profiles.
const rememberedSelectors = 4096

// CacheOptions keep out of the cache what nothing reads: managed fields are as large as the objects, and annotations of
// namespaces larger.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Namespace{}: {Transform: func(object any) (any, error) {
				if namespace, ok := object.(*corev1.Namespace); ok {
					namespace.ManagedFields, namespace.Annotations = nil, nil
				}
				return object, nil
			}},
		},
	}
}

// AddToScheme adds the kinds that the manager's client must know.
func AddToScheme(scheme *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, resourcev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	return nil
}

// Setup adds both controllers, and what feeds them, to a manager.
func Setup(ctx context.Context, mgr manager.Manager, clk clock.PassiveClock) error {
	drivers, err := catalog.Embedded()
	if err != nil {
		return err
	}
	index := mgr.GetFieldIndexer()
	err = index.IndexField(ctx, &resourcev1.ResourceClaimTemplate{},
		snapshot.TemplateNameIndex, snapshot.IndexTemplateName)
	if err != nil {
		return fmt.Errorf("indexing ResourceClaimTemplates: %w", err)
	}

	devices, changes := inventory.New(), &bell{}
	feed, err := source.New(mgr.GetConfig(), devices, source.Options{
		ProfileLabel: v1alpha1.ProfileLabel,
		Changed:      changes.ring,
		Log:          mgr.GetLogger().WithName("source"),
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(feed); err != nil {
		return err
	}

	compiler := selector.NewCompiler(rememberedSelectors)
	reader := snapshot.Reader{Cache: mgr.GetCache()}
	children := apply.NewWriter(mgr.GetClient(), v1alpha1.FieldManager, clk)
	answers := &server{writer: children, clock: clk}
	statuses := &statusWriter{client: mgr.GetClient(), events: announcer{mgr.GetEventRecorder("gpupool-operator")}}
	find := mapper{cache: mgr.GetCache()}

	pools := &poolReconciler{
		cache: mgr.GetCache(), reader: reader, catalog: drivers, compiler: compiler, inventory: devices,
		children: children, server: answers, status: statuses, clock: clk,
	}
	if err := pools.setup(mgr, find, changes); err != nil {
		return fmt.Errorf("setting up the GpuPool controller: %w", err)
	}
	profiles := &profileReconciler{
		cache: mgr.GetCache(), reader: reader, catalog: drivers, compiler: compiler, inventory: devices,
		children: children, server: answers, status: statuses, clock: clk,
	}
	if err := profiles.setup(mgr, find, changes); err != nil {
		return fmt.Errorf("setting up the WorkloadProfile controller: %w", err)
	}
	return nil
}

func (r *poolReconciler) setup(mgr manager.Manager, find mapper, changes *bell) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("gpupool").
		For(&v1alpha1.GpuPool{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&resourcev1.DeviceClass{}, enqueue(find.poolsOfClass)).
		Watches(&v1alpha1.GpuPool{}, enqueue(find.poolsOfSameName),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(changes.source(r.clock, func(ctx context.Context, change inventory.Change) []reconcile.Request {
			return find.pools(ctx, func(pool *v1alpha1.GpuPool) bool {
				return change.TouchesPool(pool.Spec.Driver.Name, plan.ClassName(pool))
			})
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2}).
		Complete(r)
}

func (r *profileReconciler) setup(mgr manager.Manager, find mapper, changes *bell) error {
	specChanged := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("workloadprofile").
		For(&v1alpha1.WorkloadProfile{}, specChanged).
		Watches(&v1alpha1.GpuPool{}, enqueue(find.profilesOfPool), specChanged).
		Watches(&resourcev1.DeviceClass{}, enqueue(find.profilesOfClass)).
		Watches(&resourcev1.ResourceClaimTemplate{}, enqueue(find.profilesOfTemplate)).
		Watches(&corev1.Namespace{}, enqueue(find.profilesOfNamespace), builder.WithPredicates(namespaceChanged)).
		WatchesRawSource(changes.source(r.clock, func(ctx context.Context, change inventory.Change) []reconcile.Request {
			return find.profiles(ctx, func(profile *v1alpha1.WorkloadProfile) bool {
				return change.TouchesProfile(profile.Name) || slices.ContainsFunc(plan.PoolNames(profile), func(pool string) bool {
					return change.TouchesPool(find.driverOf(ctx, pool), "")
				})
			})
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r)
}
