package fanout

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/apply"
	"github.com/gpupool/gpupool-operator/test/cluster"
	"github.com/gpupool/gpupool-operator/test/install"
	"github.com/gpupool/gpupool-operator/test/operator"
)

const (
	namespaces = 2000
	// rounds are measured for each of the two, in turn; the fastest of each counts, since noise only ever adds.
	rounds = 3
	// slower is how much slower the operator may be than the bare client.
	slower   = 1.2
	patience = 5 * time.Minute
)

func TestFanOut(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	ctrl.SetLogger(logr.Discard())
	ctx := t.Context()
	running, err := cluster.Start(ctx, cluster.Options{Log: os.Stderr, Components: []cluster.Component{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	}()
	c, rights, err := install.Into(ctx, running)
	if err != nil {
		t.Fatal(err)
	}
	names := makeNamespaces(ctx, t, c)
	writes := startOperator(ctx, t, rights)
	applyYAML(ctx, t, c, "apiVersion: gpupool.dev/v1alpha1\nkind: GpuPool\nmetadata: {name: h100}\nspec: {driver: {name: gpu.nvidia.com}}\n")

	publish(ctx, t, c, "first")
	var bare, ours []time.Duration
	for round := range rounds {
		bare = append(bare, createBare(ctx, t, c, names, fmt.Sprintf("bare-%d", round)))
		ours = append(ours, publish(ctx, t, c, fmt.Sprintf("profile-%d", round)))
	}
	ratio := float64(slices.Min(ours)) / float64(slices.Min(bare))
	t.Logf("%d namespaces: bare client %v, operator %v, ratio %.2f", namespaces, bare, ours, ratio)
	if ratio > slower {
		t.Errorf("the operator took %.2f times as long as a bare client, want at most %.1f", ratio, slower)
	}

	before := templateWrites(writes)
	touchAll(ctx, t, c)
	if sent := templateWrites(writes) - before; sent != 0 {
		t.Errorf("reconciling all again sent %d writes", sent)
	}
}

func makeNamespaces(ctx context.Context, t *testing.T, c client.Client) []string {
	t.Helper()
	names := make([]string, namespaces)
	workqueue.ParallelizeUntil(ctx, apply.Concurrency, namespaces, func(i int) {
		names[i] = fmt.Sprintf("team-%04d", i)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names[i], Labels: map[string]string{"team": "all"}}}
		if err := c.Create(ctx, namespace); err != nil {
			t.Error(err)
		}
	})
	return names
}

// startOperator runs the operator under its own rights.
func startOperator(ctx context.Context, t *testing.T, rights *rest.Config) *operator.Recorder {
	t.Helper()
	writes := &operator.Recorder{}
	stop, err := operator.Start(ctx, rights, writes, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return writes
}

// templateWrites are the writes of templates.
func templateWrites(writes *operator.Recorder) int {
	count := 0
	for _, write := range writes.Writes() {
		if strings.Contains(write, "/resourceclaimtemplates") {
			count++
		}
	}
	return count
}

// createBare creates the template that the operator has published, under another name, and returns how long that took.
func createBare(ctx context.Context, t *testing.T, c client.Client, names []string, name string) time.Duration {
	t.Helper()
	published := &resourcev1.ResourceClaimTemplate{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: names[0], Name: "first"}, published); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	workqueue.ParallelizeUntil(ctx, apply.Concurrency, len(names), func(i int) {
		template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{
			Namespace: names[i], Name: name, OwnerReferences: published.OwnerReferences,
			Labels: map[string]string{v1alpha1.ManagedByLabel: "somebody", v1alpha1.ProfileLabel: "first"},
		}, Spec: published.Spec}
		if err := c.Create(ctx, template); err != nil {
			t.Error(err)
		}
	})
	return time.Since(begun)
}

// publish applies a profile for all namespaces and returns how long it took until its status says that all have it.
func publish(ctx context.Context, t *testing.T, c client.Client, name string) time.Duration {
	t.Helper()
	begun := time.Now()
	applyYAML(ctx, t, c, fmt.Sprintf(`
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: %s}
spec:
  namespaces: {selector: {matchLabels: {team: all}}}
  requests: [{name: gpu, exactly: {poolName: h100, count: 8}}]
`, name))
	for time.Since(begun) < patience {
		profile := &v1alpha1.WorkloadProfile{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, profile); err != nil {
			t.Fatal(err)
		}
		if n := profile.Status.Namespaces; n != nil && *n.Published == namespaces {
			return time.Since(begun)
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Fatalf("profile %s did not reach all namespaces within %v", name, patience)
	return 0
}

// touchAll changes each namespace in a way that makes every profile look at all again, and waits until they have.
func touchAll(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()
	workqueue.ParallelizeUntil(ctx, apply.Concurrency, namespaces, func(i int) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%04d", i)}}
		if err := c.Patch(ctx, namespace, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"labels":{"touched":"yes"}}}`))); err != nil {
			t.Error(err)
		}
	})
	// A profile that is applied now is served after what was queued before it.
	applyYAML(ctx, t, c, `
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: last}
spec:
  namespaces: {selector: {matchLabels: {team: nobody}}}
  requests: [{name: gpu, exactly: {poolName: h100}}]
`)
	for begun := time.Now(); ; <-time.After(20 * time.Millisecond) {
		profile := &v1alpha1.WorkloadProfile{}
		if err := c.Get(ctx, client.ObjectKey{Name: "last"}, profile); err != nil || time.Since(begun) > patience {
			t.Fatal(err)
		}
		if profile.Status.ObservedGeneration > 0 {
			return
		}
	}
}

func applyYAML(ctx context.Context, t *testing.T, c client.Client, text string) {
	t.Helper()
	if err := install.YAML(ctx, c, []byte(text)); err != nil {
		t.Fatal(err)
	}
}
