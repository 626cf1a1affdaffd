package controllers

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/inventory"
	"github.com/gpupool/gpupool-operator/internal/plan"
)

// mapper finds the keys that an event concerns. It reads the cache only.
type mapper struct {
	cache client.Reader
}

// poolsOfClass are the pool that a DeviceClass was written for and the pools that want its name or its extended
// resource name: one of them may be waiting for the name to become free.
func (m mapper) poolsOfClass(ctx context.Context, object client.Object) []reconcile.Request {
	extendedResourceName := ""
	if class, ok := object.(*resourcev1.DeviceClass); ok && class.Spec.ExtendedResourceName != nil {
		extendedResourceName = *class.Spec.ExtendedResourceName
	}
	return m.pools(ctx, func(pool *v1alpha1.GpuPool) bool {
		facts := plan.FactsOf(pool)
		return facts.ClassName == object.GetName() || object.GetLabels()[v1alpha1.PoolLabel] == pool.Name ||
			extendedResourceName != "" && facts.ExtendedResourceName == extendedResourceName
	})
}

// poolsOfSameName are the pools that want the same extended resource name as a pool.
func (m mapper) poolsOfSameName(ctx context.Context, object client.Object) []reconcile.Request {
	changed, ok := object.(*v1alpha1.GpuPool)
	if !ok {
		return nil
	}
	name := plan.FactsOf(changed).ExtendedResourceName
	if name == "" {
		return nil
	}
	return m.pools(ctx, func(pool *v1alpha1.GpuPool) bool {
		return plan.FactsOf(pool).ExtendedResourceName == name
	})
}

// driverOf is the driver of a pool, empty if there is no such pool.
func (m mapper) driverOf(ctx context.Context, pool string) string {
	object := &v1alpha1.GpuPool{}
	if m.cache.Get(ctx, client.ObjectKey{Name: pool}, object) != nil {
		return ""
	}
	return object.Spec.Driver.Name
}

// profilesOfClass are the profiles that take devices from a pool whose DeviceClass it is.
func (m mapper) profilesOfClass(ctx context.Context, class client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, pool := range m.poolsOfClass(ctx, class) {
		requests = append(requests, m.profilesOfPoolNamed(ctx, pool.Name)...)
	}
	return requests
}

func (m mapper) profilesOfPool(ctx context.Context, pool client.Object) []reconcile.Request {
	return m.profilesOfPoolNamed(ctx, pool.GetName())
}

func (m mapper) profilesOfPoolNamed(ctx context.Context, pool string) []reconcile.Request {
	return m.profiles(ctx, func(profile *v1alpha1.WorkloadProfile) bool {
		return slices.Contains(plan.PoolNames(profile), pool)
	})
}

// profilesOfTemplate are the profile that a template was written for and the profiles that want its name.
func (m mapper) profilesOfTemplate(ctx context.Context, template client.Object) []reconcile.Request {
	return m.profiles(ctx, func(profile *v1alpha1.WorkloadProfile) bool {
		return plan.TemplateName(profile) == template.GetName() ||
			template.GetLabels()[v1alpha1.ProfileLabel] == profile.Name
	})
}

// profilesOfNamespace are the profiles that select a namespace. For a change of labels it is asked about both states.
func (m mapper) profilesOfNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return m.profiles(ctx, func(profile *v1alpha1.WorkloadProfile) bool {
		return plan.SelectsNamespace(profile, namespace.GetName(), namespace.GetLabels())
	})
}

func (m mapper) pools(ctx context.Context, concerned func(*v1alpha1.GpuPool) bool) []reconcile.Request {
	list := &v1alpha1.GpuPoolList{}
	if err := m.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "Listing GpuPools for an event")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if concerned(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: key(list.Items[i].Name)})
		}
	}
	return requests
}

func (m mapper) profiles(ctx context.Context, concerned func(*v1alpha1.WorkloadProfile) bool) []reconcile.Request {
	list := &v1alpha1.WorkloadProfileList{}
	if err := m.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "Listing WorkloadProfiles for an event")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if concerned(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: key(list.Items[i].Name)})
		}
	}
	return requests
}

// namespaceChanged lets only those updates of a Namespace through that change which profiles select it.
var namespaceChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Namespace), e.ObjectNew.(*corev1.Namespace)
		return !equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
			before.Status.Phase != after.Status.Phase ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
	},
}

// bell passes changes of the inventory on to the controllers. It is rung before they start, too: they then reconcile
// everything anyway.
type bell struct {
	mu        sync.Mutex
	listeners []func(inventory.Change)
}

func (b *bell) ring(change inventory.Change) {
	b.mu.Lock()
	listeners := b.listeners
	b.mu.Unlock()
	for _, listen := range listeners {
		listen(change)
	}
}

// source is a source of requests for a controller: those that find names for a change, each at most once per second.
func (b *bell) source(
	clk clock.PassiveClock, find func(context.Context, inventory.Change) []reconcile.Request,
) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		pace := pacer{clock: clk, due: map[reconcile.Request]time.Time{}}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.listeners = append(b.listeners, func(change inventory.Change) {
			for _, request := range find(ctx, change) {
				queue.AddAfter(request, pace.delay(request))
			}
		})
		return nil
	})
}

// Bursts of changes are collected for settleDelay; after that an object is looked at once in pacePeriod at the most.
const (
	settleDelay = 50 * time.Millisecond
	pacePeriod  = time.Second
)

// pacer spreads the requests for one object out in time. One goroutine uses it.
type pacer struct {
	clock clock.PassiveClock
	due   map[reconcile.Request]time.Time
}

func (p pacer) delay(request reconcile.Request) time.Duration {
	now := p.clock.Now()
	due := p.due[request]
	if due.Before(now) { // the last one was handed out, or there was none
		due = due.Add(pacePeriod)
		if earliest := now.Add(settleDelay); due.Before(earliest) {
			due = earliest
		}
		p.due[request] = due
	}
	return due.Sub(now)
}

// enqueue maps events of a kind to requests.
func enqueue(find handler.MapFunc) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(find)
}
