package source

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// retry is the pace of client-go's reflectors: a server in trouble is asked every 30 to 60 seconds in the end.
var retry = wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 30 * time.Second}

// retryReset is after how long without a retry the pace starts anew.
const retryReset = 2 * time.Minute

// target is what a watcher watches.
type target struct {
	client   cache.Getter
	resource string
	selector fields.Selector
	// example is an object of the type that the client decodes.
	example runtime.Object
}

// watcher keeps a store equal to what a server has of one kind.
type watcher struct {
	reflector *cache.Reflector
	store     *store
	trouble   *trouble
}

func newWatcher(of target, into *store, trouble *trouble) *watcher {
	listWatch := newListWatch(of, into.decoder.decode)
	into.alive = trouble.over
	reflector := cache.NewReflectorWithOptions(listWatch, of.example, into, cache.ReflectorOptions{
		Logger: &trouble.log,
		Name:   "inventory/" + of.resource,
	})
	reflector.WatchListPageSize = pageSize
	return &watcher{reflector: reflector, store: into, trouble: trouble}
}

// run lists and watches until the context ends.
func (w *watcher) run(ctx context.Context) {
	_ = w.until(ctx, func(error) bool { return false })
}

// runWhileServed lists and watches until the context ends or the server does not know the kind any more. What it had of
// it is gone then.
func (w *watcher) runWhileServed(ctx context.Context) {
	if err := w.until(ctx, apierrors.IsNotFound); err == nil {
		w.store.clear()
	}
}

// until lists and watches, again and again, until an error is the end or the context ends, which is an error.
//
// It does what Reflector.RunWithContext does but for how it reports: that would log each retry.
func (w *watcher) until(ctx context.Context, isEnd func(error) bool) error {
	pace := retry.DelayWithReset(clock.RealClock{}, retryReset)
	return pace.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if err := w.reflector.ListAndWatchWithContext(ctx); err != nil && ctx.Err() == nil {
			if isEnd(err) {
				return true, nil
			}
			w.trouble.tell(err)
		}
		return false, ctx.Err()
	})
}
