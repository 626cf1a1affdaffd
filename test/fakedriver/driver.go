package fakedriver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	// syncWithin bounds the first look at the cluster: without the right to list, it would never end.
	syncWithin = 30 * time.Second

	poolWorkers = 8
	podWorkers  = 4

	// A failed write is tried again soon: tests wait for it.
	firstRetry = 20 * time.Millisecond
	lastRetry  = 2 * time.Second

	podsByNode   = "node"
	slicesByPool = "pool"
)

// Driver is a running simulated driver.
type Driver struct {
	options Options
	// kubelet is the client for what a kubelet does.
	kubelet kubernetes.Interface
	cancel  context.CancelFunc
	done    chan struct{}

	nodes  corelisters.NodeLister
	pods   cache.Indexer
	claims resourcelisters.ResourceClaimLister
	slices cache.Indexer

	poolQueue workqueue.TypedRateLimitingInterface[string]
	podQueue  workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu sync.Mutex
	// poolsByName holds every pool that was ever asked for or published.
	poolsByName map[string]*pool
	// clients are the driver's own, by the UID of the driver pod.
	clients map[types.UID]kubernetes.Interface
}

// Start runs the driver until Stop or the end of ctx. It returns once it knows the cluster; publishing goes on in the
// background. The configuration needs to watch nodes, pods, ResourceClaims and ResourceSlices, to patch pods and to
// delete ResourceSlices; see Options.Identity for the rest.
//
// A driver that ends leaves slices and finalizers as they are. One that is started again takes them over.
func Start(ctx context.Context, config *rest.Config, options Options) (*Driver, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for driver %s: %w", options.Name, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	d := &Driver{
		options:     options,
		kubelet:     client,
		cancel:      cancel,
		done:        make(chan struct{}),
		poolQueue:   newQueue[string](),
		podQueue:    newQueue[types.NamespacedName](),
		poolsByName: map[string]*pool{},
		clients:     map[types.UID]kubernetes.Interface{},
	}
	all := informers.NewSharedInformerFactory(client, 0)
	own := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(list *metav1.ListOptions) { list.FieldSelector = d.ownSlices() }))
	if err := d.watch(all, own); err != nil {
		cancel()
		return nil, err
	}
	if err := d.run(ctx, all, own); err != nil {
		d.Stop()
		return nil, err
	}
	return d, nil
}

// Stop ends the driver and returns when nothing of it runs any more. It may be called more than once.
func (d *Driver) Stop() {
	d.cancel()
	<-d.done
}

// Name is the driver's name.
func (d *Driver) Name() string { return d.options.Name }

// PublishError is why the last attempt to write the pool failed, or nil. The pool is named as in the other methods.
func (d *Driver) PublishError(name string) error {
	p := d.pool(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

func newQueue[T comparable]() workqueue.TypedRateLimitingInterface[T] {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[T](firstRetry, lastRetry))
}

func (d *Driver) ownSlices() string {
	return fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorDriver, d.options.Name).String()
}

// watch sets up what is watched and what an event puts into the queues.
func (d *Driver) watch(all, own informers.SharedInformerFactory) error {
	nodes := all.Core().V1().Nodes()
	pods := all.Core().V1().Pods()
	claims := all.Resource().V1().ResourceClaims()
	ownSlices := own.Resource().V1().ResourceSlices()
	d.nodes, d.claims = nodes.Lister(), claims.Lister()
	d.pods, d.slices = pods.Informer().GetIndexer(), ownSlices.Informer().GetIndexer()
	podsErr := pods.Informer().AddIndexers(cache.Indexers{podsByNode: func(object any) ([]string, error) {
		return []string{object.(*corev1.Pod).Spec.NodeName}, nil
	}})
	slicesErr := ownSlices.Informer().AddIndexers(cache.Indexers{slicesByPool: func(object any) ([]string, error) {
		return []string{poolNameOf(object.(*resourcev1.ResourceSlice))}, nil
	}})
	if err := errors.Join(podsErr, slicesErr); err != nil {
		return fmt.Errorf("indexing what driver %s watches: %w", d.options.Name, err)
	}
	_, nodesErr := nodes.Informer().AddEventHandler(onChange(d.nodeChanged))
	_, podsErr = pods.Informer().AddEventHandler(onChange(d.podChanged))
	_, claimsErr := claims.Informer().AddEventHandler(onChange(d.claimChanged))
	_, slicesErr = ownSlices.Informer().AddEventHandler(onChange(d.sliceChanged))
	if err := errors.Join(nodesErr, podsErr, claimsErr, slicesErr); err != nil {
		return fmt.Errorf("setting up the watches of driver %s: %w", d.options.Name, err)
	}
	return nil
}

// run starts watches and workers. Whether it fails or not, everything that it started ends with ctx.
func (d *Driver) run(ctx context.Context, all, own informers.SharedInformerFactory) error {
	all.StartWithContext(ctx)
	own.StartWithContext(ctx)
	err := d.waitSynced(ctx, all, own)
	var workers sync.WaitGroup
	if err == nil {
		for range poolWorkers {
			workers.Go(func() { work(ctx, d, d.poolQueue, d.syncPool) })
		}
		for range podWorkers {
			workers.Go(func() { work(ctx, d, d.podQueue, d.syncPod) })
		}
	}
	go func() {
		<-ctx.Done()
		d.poolQueue.ShutDown()
		d.podQueue.ShutDown()
		workers.Wait()
		all.Shutdown()
		own.Shutdown()
		close(d.done)
	}()
	return err
}

func (d *Driver) waitSynced(ctx context.Context, factories ...informers.SharedInformerFactory) error {
	ctx, cancel := context.WithTimeoutCause(ctx, syncWithin, fmt.Errorf("no answer within %s", syncWithin))
	defer cancel()
	for _, factory := range factories {
		if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
			return fmt.Errorf("listing what driver %s watches: %w", d.options.Name, err)
		}
	}
	return nil
}

// onChange calls f with the object of every event, the last known one if it was deleted.
func onChange[T any](f func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { f(object.(T)) },
		UpdateFunc: func(_, object any) { f(object.(T)) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			f(object.(T))
		},
	}
}

// work syncs what is in the queue until the queue is shut down.
func work[T comparable](
	ctx context.Context, d *Driver, queue workqueue.TypedRateLimitingInterface[T], sync func(context.Context, T) error,
) {
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		err := sync(ctx, key)
		switch {
		case err == nil:
			queue.Forget(key)
		case ctx.Err() == nil:
			// A conflict is how a write learns that somebody else was faster.
			if !apierrors.IsConflict(err) {
				d.options.Log.Error(err, "Retrying", "driver", d.options.Name, "key", key)
			}
			queue.AddRateLimited(key)
		}
		queue.Done(key)
	}
}

func (d *Driver) nodeChanged(node *corev1.Node) {
	if name, ok := d.poolOf(node); ok {
		d.poolQueue.Add(name)
	}
	// Its labels may have left the driver's selector.
	d.poolQueue.Add(node.Name)
	d.enqueuePodsOn(node.Name)
}

func (d *Driver) podChanged(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	if d.isDriverPod(pod) {
		if node, err := d.nodes.Get(pod.Spec.NodeName); err == nil {
			d.nodeChanged(node)
		}
	}
	d.enqueuePod(pod)
}

func (d *Driver) claimChanged(claim *resourcev1.ResourceClaim) {
	for _, consumer := range claim.Status.ReservedFor {
		if consumer.Resource == "pods" {
			d.podQueue.Add(types.NamespacedName{Namespace: claim.Namespace, Name: consumer.Name})
		}
	}
}

func (d *Driver) sliceChanged(slice *resourcev1.ResourceSlice) { d.poolQueue.Add(poolNameOf(slice)) }

// enqueuePod queues a pod that the driver may have something to do with.
func (d *Driver) enqueuePod(pod *corev1.Pod) {
	if usesClaims(pod) || d.holds(pod) {
		d.podQueue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
}

func (d *Driver) enqueuePodsOn(node string) {
	for _, pod := range d.podsOn(node) {
		d.enqueuePod(pod)
	}
}

func (d *Driver) podsOn(node string) []*corev1.Pod {
	return indexed[*corev1.Pod](d.pods, podsByNode, node)
}

// indexed returns the objects of a cache under a value of one of its indexes.
func indexed[T any](indexer cache.Indexer, index, value string) []T {
	objects, err := indexer.ByIndex(index, value)
	if err != nil {
		// The index was added before the informer started.
		panic(err)
	}
	typed := make([]T, 0, len(objects))
	for _, object := range objects {
		typed = append(typed, object.(T))
	}
	return typed
}

// poolOf is the name under which the driver keeps the node's pool, if it serves the node.
func (d *Driver) poolOf(node *corev1.Node) (string, bool) {
	if !d.options.Nodes.Matches(labels.Set(node.Labels)) {
		return "", false
	}
	shape := d.options.Shape(node)
	switch {
	case shape == nil:
		return "", false
	case shape.shared:
		return shape.pool, true
	default:
		return node.Name, true
	}
}

// aliveOn reports whether the driver runs on the node, and the pod that it runs in.
func (d *Driver) aliveOn(node *corev1.Node) (*corev1.Pod, bool) {
	if d.options.Mode == Always {
		return nil, d.options.Nodes.Matches(labels.Set(node.Labels))
	}
	var alive *corev1.Pod
	for _, pod := range d.podsOn(node.Name) {
		if d.isDriverPod(pod) && isReady(pod) && (alive == nil || pod.Name < alive.Name) {
			alive = pod
		}
	}
	return alive, alive != nil
}

func (d *Driver) isDriverPod(pod *corev1.Pod) bool {
	return d.options.Mode == WhileDriverPodReady && pod.Namespace == d.options.Namespace &&
		d.options.PodLabels.Matches(labels.Set(pod.Labels))
}

func isReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// as is the client for what the driver itself does from the driver pod.
func (d *Driver) as(ctx context.Context, driverPod *corev1.Pod) (kubernetes.Interface, error) {
	if d.options.Identity == nil {
		return d.kubelet, nil
	}
	var uid types.UID
	if driverPod != nil {
		uid = driverPod.UID
	}
	d.mu.Lock()
	client := d.clients[uid]
	d.mu.Unlock()
	if client != nil {
		return client, nil
	}
	config, err := d.options.Identity(ctx, driverPod)
	if err != nil {
		return nil, fmt.Errorf("getting the identity of driver %s: %w", d.options.Name, err)
	}
	client, err = kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for driver %s: %w", d.options.Name, err)
	}
	// A driver watches its slices. The cache here does so for all nodes, so the right is only tried.
	watch, err := client.ResourceV1().ResourceSlices().Watch(ctx, metav1.ListOptions{FieldSelector: d.ownSlices()})
	if err != nil {
		return nil, fmt.Errorf("watching the slices of driver %s: %w", d.options.Name, err)
	}
	watch.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clients[uid] = client
	return client, nil
}

// pool returns the driver's notes on a pool, making them if there are none.
func (d *Driver) pool(name string) *pool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.poolsByName[name]
	if p == nil {
		p = newPool(name)
		d.poolsByName[name] = p
	}
	return p
}
