package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/plan"
)

// TemplateNameIndex is the field index over ResourceClaimTemplates by name that Reader.Templates needs.
const TemplateNameIndex = "metadata.name"

// IndexTemplateName computes TemplateNameIndex.
func IndexTemplateName(object client.Object) []string {
	return []string{object.GetName()}
}

// Reader reads from a cache. What it returns is shared with the cache and must not be changed.
type Reader struct {
	Cache client.Reader
}

// Classes are the DeviceClasses that concern a pool: the one that holds the name its class has or should have, and all
// that were written for the pool.
func (r Reader) Classes(ctx context.Context, poolName, className string) ([]client.Object, error) {
	classes := &resourcev1.DeviceClassList{}
	if err := r.Cache.List(ctx, classes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing DeviceClasses: %w", err)
	}
	var concerned []client.Object
	for i := range classes.Items {
		class := &classes.Items[i]
		if class.Name == className || class.Labels[v1alpha1.PoolLabel] == poolName {
			concerned = append(concerned, class)
		}
	}
	return concerned, nil
}

// Templates are the ResourceClaimTemplates that concern a profile: those of its template's name in every namespace, and
// all that were written for the profile.
func (r Reader) Templates(ctx context.Context, profileName, templateName string) ([]client.Object, error) {
	named, labelled := &resourcev1.ResourceClaimTemplateList{}, &resourcev1.ResourceClaimTemplateList{}
	byName := client.MatchingFields{TemplateNameIndex: templateName}
	if err := r.Cache.List(ctx, named, byName, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ResourceClaimTemplates by name: %w", err)
	}
	byLabel := client.MatchingLabels{v1alpha1.ProfileLabel: profileName}
	if err := r.Cache.List(ctx, labelled, byLabel, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ResourceClaimTemplates by label: %w", err)
	}
	concerned := make([]client.Object, 0, len(named.Items))
	for i := range named.Items {
		concerned = append(concerned, &named.Items[i])
	}
	for i := range labelled.Items {
		if labelled.Items[i].Name != templateName {
			concerned = append(concerned, &labelled.Items[i])
		}
	}
	return concerned, nil
}

// Namespaces are the namespaces that exist and are not being deleted, sorted by name.
func (r Reader) Namespaces(ctx context.Context) ([]plan.Namespace, error) {
	list := &corev1.NamespaceList{}
	if err := r.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Namespaces: %w", err)
	}
	namespaces := make([]plan.Namespace, 0, len(list.Items))
	for i := range list.Items {
		namespace := &list.Items[i]
		if namespace.DeletionTimestamp == nil && namespace.Status.Phase != corev1.NamespaceTerminating {
			namespaces = append(namespaces, plan.Namespace{Name: namespace.Name, Labels: namespace.Labels})
		}
	}
	slices.SortFunc(namespaces, func(a, b plan.Namespace) int { return strings.Compare(a.Name, b.Name) })
	return namespaces, nil
}

// PoolsOf are the facts about the GpuPools that a profile names, by name. Pools that do not exist are left out.
func (r Reader) PoolsOf(ctx context.Context, profile *v1alpha1.WorkloadProfile) (map[string]plan.PoolFacts, error) {
	pools := map[string]plan.PoolFacts{}
	for _, name := range plan.PoolNames(profile) {
		pool := &v1alpha1.GpuPool{}
		if err := r.Cache.Get(ctx, client.ObjectKey{Name: name}, pool); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading GpuPool %q: %w", name, err)
		}
		facts := plan.FactsOf(pool)
		class := &resourcev1.DeviceClass{}
		err := r.Cache.Get(ctx, client.ObjectKey{Name: facts.ClassName}, class)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading DeviceClass %q: %w", facts.ClassName, err)
		}
		facts.Published = err == nil && plan.Owned(class, v1alpha1.PoolLabel, name) && class.DeletionTimestamp == nil
		pools[name] = facts
	}
	return pools, nil
}

// ExtendedResources are all DeviceClasses that hold an extended resource name, and the facts about all GpuPools that
// want one, by name.
func (r Reader) ExtendedResources(ctx context.Context) ([]plan.ClassFacts, map[string]plan.PoolFacts, error) {
	classes, pools := &resourcev1.DeviceClassList{}, &v1alpha1.GpuPoolList{}
	if err := r.Cache.List(ctx, classes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing DeviceClasses: %w", err)
	}
	if err := r.Cache.List(ctx, pools, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing GpuPools: %w", err)
	}
	var holders []plan.ClassFacts
	for i := range classes.Items {
		class := &classes.Items[i]
		if name := class.Spec.ExtendedResourceName; name != nil && class.DeletionTimestamp == nil {
			holders = append(holders, plan.ClassFacts{
				Name: class.Name, Created: class.CreationTimestamp.Time, ExtendedResourceName: *name,
			})
		}
	}
	wanting := map[string]plan.PoolFacts{}
	for i := range pools.Items {
		pool := &pools.Items[i]
		if facts := plan.FactsOf(pool); facts.ExtendedResourceName != "" && pool.DeletionTimestamp == nil {
			wanting[pool.Name] = facts
		}
	}
	return holders, wanting, nil
}
