package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	resourcev1client "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/gpupool/gpupool-operator/internal/inventory"
)

// discoveryPeriod is how often a server that does not serve DeviceTaintRules is asked whether it does by now. It is one
// small GET; the kind comes and goes with the server's version and settings only.
const discoveryPeriod = 5 * time.Minute

const taintRulesResource = "devicetaintrules"

// waitingPods selects pods that are not placed and have not ended. A pod that is placed leaves the selection, and the
// watch says that it is deleted.
var waitingPods = fields.AndSelectors(
	fields.OneTermEqualSelector("spec.nodeName", ""),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
)

// Options are what a Source needs besides a server and an inventory.
type Options struct {
	// ProfileLabel is the label whose value attributes a claim to a profile.
	ProfileLabel string
	// Changed is called with what changed, from one goroutine. While it runs, further changes are gathered into one; the
	// watches never wait for it. Nil if nobody wants to know.
	Changed func(inventory.Change)
	// Log is where trouble with the server is told. The zero Logger drops it.
	Log logr.Logger
}

// Source watches an API server and feeds an inventory. It is a manager.Runnable of controller-runtime that every
// replica runs, the leader or not.
type Source struct {
	inventory *inventory.Inventory
	options   Options
	mailbox   *mailbox

	discovery discovery.DiscoveryInterfaceWithContext
	// required are watched from the start, taintRules where the server serves them.
	required        []*watcher
	taintRules      *watcher
	discoveryPeriod time.Duration
}

// New makes a Source. The error is a rest.Config of which no client can be made.
func New(config *rest.Config, in *inventory.Inventory, options Options) (*Source, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making an HTTP client: %w", err)
	}
	compact := rest.CopyConfig(config)
	compact.ContentType = runtime.ContentTypeProtobuf
	compact.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := corev1client.NewForConfigAndClient(compact, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a client of core/v1: %w", err)
	}
	resource, err := resourcev1client.NewForConfigAndClient(compact, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a client of resource.k8s.io/v1: %w", err)
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	s := &Source{
		inventory:       in,
		options:         options,
		mailbox:         newMailbox(),
		discovery:       discoveryClient,
		discoveryPeriod: discoveryPeriod,
	}
	all := fields.Everything()
	s.required = []*watcher{
		s.watcher(inventory.Nodes, target{core.RESTClient(), "nodes", all, &corev1.Node{}}),
		s.watcher(inventory.Slices, target{resource.RESTClient(), "resourceslices", all, &resourcev1.ResourceSlice{}}),
		s.watcher(inventory.Claims, target{resource.RESTClient(), "resourceclaims", all, &resourcev1.ResourceClaim{}}),
		s.watcher(inventory.Pods, target{core.RESTClient(), "pods", waitingPods, &corev1.Pod{}}),
	}
	s.taintRules = s.watcher(inventory.TaintRules,
		target{resource.RESTClient(), taintRulesResource, all, &resourcev1.DeviceTaintRule{}})
	return s, nil
}

func (s *Source) watcher(kind inventory.Kind, of target) *watcher {
	return newWatcher(of, &store{
		kind:      kind,
		decoder:   decoder{profileLabel: s.options.ProfileLabel},
		inventory: s.inventory,
		post:      s.mailbox.post,
	}, s.trouble(of.resource))
}

func (s *Source) trouble(resource string) *trouble {
	return &trouble{log: s.options.Log.WithValues("resource", resource)}
}

// NeedLeaderElection is false: a replica that is not the leader has its inventory ready for when it is.
func (*Source) NeedLeaderElection() bool { return false }

// Synced says whether the inventory has seen the whole cluster.
func (s *Source) Synced() bool { return s.inventory.Synced() }

// Start watches until the context ends. It returns no error: a server that does not answer, or forbids a kind, is asked
// again at a slowing pace, and the inventory is not synced before it has seen everything.
func (s *Source) Start(ctx context.Context) error {
	ctx = logr.NewContext(ctx, s.options.Log)
	var running sync.WaitGroup
	defer running.Wait()
	if s.options.Changed != nil {
		running.Go(func() { s.mailbox.deliver(ctx, s.options.Changed) })
	}
	// Counts that miss taints would be wrong: whether there can be any must be known before anything else is.
	served, err := s.awaitDiscovery(ctx)
	if err != nil {
		return nil // the context ended
	}
	if served {
		s.inventory.Require(inventory.TaintRules)
	}
	for _, w := range s.required {
		running.Go(func() { w.run(ctx) })
	}
	running.Go(func() {
		if served {
			s.taintRules.runWhileServed(ctx)
		}
		s.watchTaintRules(ctx)
	})
	return nil
}

// awaitDiscovery says whether the server serves DeviceTaintRules, once it answers. The error is that of a context that
// ended.
func (s *Source) awaitDiscovery(ctx context.Context) (bool, error) {
	served := false
	trouble := s.trouble(taintRulesResource)
	pace := retry.DelayWithReset(clock.RealClock{}, retryReset)
	err := pace.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		var err error
		if served, err = s.servesTaintRules(ctx); err != nil {
			trouble.tell(err)
			return false, nil
		}
		trouble.over()
		return true, nil
	})
	return served, err
}

// servesTaintRules asks the server whether it serves DeviceTaintRules in resource.k8s.io/v1, as it does since 1.37.
func (s *Source) servesTaintRules(ctx context.Context) (bool, error) {
	version := resourcev1.SchemeGroupVersion.String()
	list, err := s.discovery.ServerResourcesForGroupVersionWithContext(ctx, version)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the resources of %s: %w", version, err)
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == taintRulesResource {
			return true, nil
		}
	}
	return false, nil
}

// watchTaintRules watches DeviceTaintRules while they are served, and asks now and then while they are not.
func (s *Source) watchTaintRules(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		// That a server does not answer is told by the other watches; it is asked again next time.
		if served, err := s.servesTaintRules(ctx); err == nil && served {
			s.taintRules.runWhileServed(ctx)
		}
	}, s.discoveryPeriod)
}
