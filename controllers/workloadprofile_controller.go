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

// +kubebuilder:rbac:groups=gpupool.dev,resources=workloadprofiles,verbs=get;list;watch
// +kubebuilder:rbac:groups=gpupool.dev,resources=workloadprofiles/status,verbs=patch
// +kubebuilder:rbac:groups=resource.k8s.io,resources=resourceclaimtemplates,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// profileReconciler publishes the ResourceClaimTemplates of a WorkloadProfile.
type profileReconciler struct {
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

// Reconcile makes one profile so. While a profile is being deleted nothing is written: its templates go by their owner
// references, and making them again would keep them.
func (r *profileReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	profile := &v1alpha1.WorkloadProfile{}
	if err := r.cache.Get(ctx, request.NamespacedName, profile); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if profile.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}

	wanted, err := r.plan(ctx, profile)
	if err != nil {
		return ctrl.Result{}, err
	}
	have, err := r.reader.Templates(ctx, profile.Name, wanted.TemplateName)
	if err != nil {
		return ctrl.Result{}, err
	}

	published, err := r.publish(ctx, profile, wanted, have)
	if err != nil {
		return ctrl.Result{}, err
	}

	err = r.status.writeProfile(ctx, profile, status.ForProfile(status.ProfileInputs{
		Profile:   profile,
		Plan:      wanted,
		Templates: published.templates(wanted.TemplateName, wanted.Selected),
		TakeWhole: r.takeWhole(wanted.Shares),
		Claims:    r.claims(profile.Name),
		Now:       r.clock.Now(),
	}), published)
	if err != nil {
		return ctrl.Result{}, err
	}
	return published.result(ctx)
}

func (r *profileReconciler) plan(ctx context.Context, profile *v1alpha1.WorkloadProfile) (plan.Profile, error) {
	inputs := plan.ProfileInputs{Profile: profile, Catalog: r.catalog, Compiler: r.compiler}
	var err error
	if inputs.Pools, err = r.reader.PoolsOf(ctx, profile); err != nil {
		return plan.Profile{}, err
	}
	if inputs.Namespaces, err = r.reader.Namespaces(ctx); err != nil {
		return plan.Profile{}, err
	}
	if plan.ProfileAsksForSharing(profile, inputs.Pools) {
		if inputs.Server, err = r.server.ask(ctx, nil); err != nil {
			return plan.Profile{}, err
		}
	}
	return plan.ForProfile(inputs), nil
}

func (r *profileReconciler) publish(
	ctx context.Context, profile *v1alpha1.WorkloadProfile, wanted plan.Profile, have []client.Object,
) (publication, error) {
	owner := ownerOf(v1alpha1.WorkloadProfileKind, v1alpha1.ProfileLabel, profile.Name)
	if wanted.Refused != nil {
		return keepAsIs(owner, have), nil
	}
	wants := []apply.Want{{
		Config: wanted.Template, Namespaced: true, Namespaces: wanted.Selected, KeepOld: wanted.KeepOld,
	}}
	operations, err := apply.Compute(owner, wants, have)
	if err != nil {
		return publication{}, err
	}
	if ptr.Deref(profile.Spec.Suspend, false) {
		return judge(operations), nil
	}
	return publish(ctx, r.children, operations), nil
}

// claims are nil while the inventory has not seen the whole cluster.
func (r *profileReconciler) claims(profile string) *inventory.ClaimCounts {
	if counts, known := r.inventory.ProfileClaims(profile); known {
		return &counts
	}
	return nil
}

// takeWhole is how many requests and alternatives take shared devices whole.
func (r *profileReconciler) takeWhole(shares []inventory.ShareQuery) int {
	count := 0
	for _, query := range shares {
		if takes, known := r.inventory.TakesWholeDevice(query); known && takes {
			count++
		}
	}
	return count
}
