package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Concurrency is how many requests one Execute has in flight.
const Concurrency = 16

// Outcome is what became of an Operation.
type Outcome string

// Outcomes.
const (
	// Kept, Created, Updated and Replaced mean that the object is as wanted, Deleted that it is gone.
	Kept     Outcome = "Kept"
	Created  Outcome = "Created"
	Updated  Outcome = "Updated"
	Replaced Outcome = "Replaced"
	Deleted  Outcome = "Deleted"
	// NameTaken means that somebody else's object has the name; nothing was written.
	NameTaken Outcome = "NameTaken"
	// Forbidden means that authorization or admission refused the write.
	Forbidden Outcome = "Forbidden"
	// FeatureUnavailable means that the server would drop a part of the spec; nothing was written.
	FeatureUnavailable Outcome = "FeatureUnavailable"
	// Contended means that somebody else keeps changing the object.
	Contended Outcome = "Contended"
	// OutOfDate means that an object with an older spec stays until somebody deletes it.
	OutOfDate Outcome = "OutOfDate"
	// Pending means that an event will tell when to go on: an object or namespace is being deleted, or somebody was
	// faster.
	Pending Outcome = "Pending"
	// Failed means that the write failed and is worth another try.
	Failed Outcome = "Failed"
)

// Good says whether the object is as wanted.
func (o Outcome) Good() bool {
	switch o {
	case Kept, Created, Updated, Replaced, Deleted:
		return true
	}
	return false
}

// Result is what became of one Operation.
type Result struct {
	Operation
	Outcome Outcome
	// Err says why the outcome is not good; nil where the outcome says all.
	Err error
	// Dropped is whether the server left a part of the spec out although the outcome is good: it lacks a feature.
	Dropped bool
	// RetryAfter is when to try again, where time alone decides; zero otherwise.
	RetryAfter time.Duration
}

// Writer carries operations out. It is safe for concurrent use by different owners.
type Writer struct {
	client     client.Writer
	manager    string
	clock      clock.PassiveClock
	contention *contention
}

// NewWriter makes a Writer that writes under the name of a field manager.
func NewWriter(c client.Writer, fieldManager string, clk clock.PassiveClock) *Writer {
	return &Writer{client: c, manager: fieldManager, clock: clk, contention: newContention()}
}

// Execute carries operations out, several at once, and returns their results in the same order.
func (w *Writer) Execute(ctx context.Context, operations []Operation) []Result {
	results := make([]Result, len(operations))
	run := execution{Writer: w, proofs: &proofs{known: map[*wanted]error{}}}
	for _, operation := range operations {
		if operation.Action == Keep { // the server holds such an object already
			run.proofs.add(operation.want, nil)
		}
	}
	workqueue.ParallelizeUntil(ctx, Concurrency, len(operations), func(i int) {
		results[i] = run.one(ctx, operations[i])
	})
	for i := range results {
		if results[i].Outcome == "" { // the context ended before its turn
			results[i] = Result{Operation: operations[i], Outcome: Failed, Err: context.Cause(ctx)}
		}
	}
	return results
}

// execution is one Execute.
type execution struct {
	*Writer
	proofs *proofs
}

func (w execution) one(ctx context.Context, operation Operation) Result {
	switch operation.Action {
	case Keep:
		if quiet := w.contention.contended(operation.Ref, w.clock.Now()); quiet > 0 {
			return Result{Operation: operation, Outcome: Contended, RetryAfter: quiet}
		}
		return Result{Operation: operation, Outcome: Kept}
	case Refuse:
		return Result{Operation: operation, Outcome: NameTaken}
	case Leave:
		return Result{Operation: operation, Outcome: OutOfDate}
	case Wait:
		return Result{Operation: operation, Outcome: Pending, Err: errors.New("an object of that name is being deleted")}
	case Delete:
		return result(operation, Deleted, w.delete(ctx, operation.have))
	default:
		return w.write(ctx, operation)
	}
}

// write sends a creation, update or replacement, unless that is what was written last, or somebody else keeps changing
// the object.
func (w execution) write(ctx context.Context, operation Operation) Result {
	now, digest := w.clock.Now(), operation.want.digest
	if s := w.contention.standing(operation.Ref, digest, operation.base(), now); s.yes {
		return Result{Operation: operation, Outcome: Kept, Dropped: s.dropped, RetryAfter: s.retryAfter}
	}
	if wait := w.contention.wait(operation.Ref, digest, now); wait > 0 {
		return Result{Operation: operation, Outcome: Contended, RetryAfter: wait}
	}
	outcome, sent, err := w.send(ctx, operation)
	if err == nil {
		w.contention.record(operation.Ref, digest, operation.base(), sent, w.clock.Now())
	}
	result := result(operation, outcome, err)
	result.Dropped = sent.dropped
	return result
}

func (w execution) send(ctx context.Context, operation Operation) (Outcome, sent, error) {
	switch {
	case operation.Action == Replace:
		return Replaced, sent{}, w.replace(ctx, operation)
	case operation.Action == Update:
		sent, err := w.apply(ctx, operation, "uid", string(operation.have.GetUID()))
		return Updated, sent, err
	case operation.want.kind.immutable:
		return Created, sent{}, w.create(ctx, operation)
	default:
		// An apply of a missing object ignores the resourceVersion, one of a present object fails unless it is current, and
		// no object was ever written at version 1 of etcd: so this creates or fails, and takes over nobody's object.
		sent, err := w.apply(ctx, operation, "resourceVersion", "1")
		return Created, sent, err
	}
}

// apply states the whole object. The guard is a field of metadata that makes the request fail if the object is not the
// one that was compared.
func (w *Writer) apply(ctx context.Context, operation Operation, guard, value string) (sent, error) {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(operation.want.content, object); err != nil {
		return sent{}, fmt.Errorf("decoding: %w", err)
	}
	if err := unstructured.SetNestedField(object.Object, value, "metadata", guard); err != nil {
		return sent{}, fmt.Errorf("setting metadata.%s: %w", guard, err)
	}
	if operation.Namespace != "" {
		object.SetNamespace(operation.Namespace)
	}
	err := w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(w.manager), client.ForceOwnership)
	if err != nil {
		return sent{}, err
	}
	returned := operation.want.kind.new()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, returned); err != nil {
		return sent{}, fmt.Errorf("decoding what was applied: %w", err)
	}
	return sent{version: returned.GetResourceVersion(), dropped: !operation.want.sameSpec(returned)}, nil
}

// create makes an object with an immutable spec, which must not exist yet. The first one of a spec is proved by a dry
// run: a server that lacks a feature drops fields without a word, and pods would get something else than they ask
// for.
func (w execution) create(ctx context.Context, operation Operation) error {
	known, err := w.proofs.get(operation.want)
	if !known {
		err = w.dryRun(ctx, operation)
		if err == nil || errors.Is(err, errDropped) {
			w.proofs.add(operation.want, err) // any other error is about the namespace
		}
	}
	if err != nil {
		return err
	}
	return w.post(ctx, operation)
}

func (w *Writer) post(ctx context.Context, operation Operation) error {
	return w.client.Create(ctx, operation.want.in(operation.Namespace), client.FieldOwner(w.manager))
}

// replace makes an object with an immutable spec anew. A dry run under another name proves first that the new one
// will be accepted, and the deletion is for the compared object only; then the gap is as short as two requests.
func (w *Writer) replace(ctx context.Context, operation Operation) error {
	if err := w.dryRun(ctx, operation); err != nil {
		return err
	}
	if err := w.delete(ctx, operation.have); err != nil {
		return err
	}
	return w.post(ctx, operation)
}

func (w *Writer) delete(ctx context.Context, object client.Object) error {
	err := w.client.Delete(ctx, object, client.Preconditions{
		UID: ptr.To(object.GetUID()), ResourceVersion: ptr.To(object.GetResourceVersion()),
	})
	return client.IgnoreNotFound(err)
}

// errDropped means that the server accepts an object without a part of it.
var errDropped = errors.New("the API server drops a part of the spec that needs a feature it lacks")

// Accepts says whether the API server would accept an object. The error is for any answer but yes and no.
func (w *Writer) Accepts(ctx context.Context, config runtime.ApplyConfiguration) (bool, error) {
	want, err := decode(config)
	if err != nil {
		return false, err
	}
	err = w.dryRun(ctx, Operation{want: want})
	if apierrors.IsInvalid(err) || errors.Is(err, errDropped) {
		return false, nil
	}
	return err == nil, err
}

func (w *Writer) dryRun(ctx context.Context, operation Operation) error {
	object := operation.want.in(operation.Namespace)
	object.SetGenerateName(object.GetName() + "-")
	object.SetName("")
	if err := w.client.Create(ctx, object, client.DryRunAll, client.FieldOwner(w.manager)); err != nil {
		return err
	}
	if !operation.want.sameSpec(object) {
		return errDropped
	}
	return nil
}

// result sorts an error by who can mend it.
func result(operation Operation, done Outcome, err error) Result {
	outcome := Failed
	switch {
	case err == nil:
		outcome = done
	case errors.Is(err, errDropped):
		outcome = FeatureUnavailable
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		// Somebody was faster than the cache. The event of it will come, and the next comparison sees the object.
		outcome = Pending
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		outcome = Pending // the event of it will come, and the namespace is not selected any more
	case apierrors.IsForbidden(err):
		outcome = Forbidden
	}
	return Result{Operation: operation, Outcome: outcome, Err: err}
}

// proofs remembers which wanted objects the server has accepted whole, or not, in one Execute.
type proofs struct {
	mu    sync.Mutex
	known map[*wanted]error
}

func (p *proofs) get(want *wanted) (known bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err, known = p.known[want]
	return known, err
}

func (p *proofs) add(want *wanted, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[want] = err
}
