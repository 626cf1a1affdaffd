package features

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/test/cluster"
	"github.com/gpupool/gpupool-operator/test/install"
	"github.com/gpupool/gpupool-operator/test/operator"
)

const patience = 30 * time.Second

// TestWithoutConsumableCapacity runs on a server without shared devices.
func TestWithoutConsumableCapacity(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	ctrl.SetLogger(logr.Discard())
	e := start(t, map[string]bool{"DRAConsumableCapacity": false})

	e.apply(t, `
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: exclusive}
spec: {driver: {name: gpu.nvidia.com}, nodes: {minReadyNodes: 0}, devices: {sharing: Exclusive}}
---
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: shared}
spec: {driver: {name: gpu.nvidia.com}, nodes: {minReadyNodes: 0}, devices: {sharing: Shared}}
---
apiVersion: v1
kind: Namespace
metadata: {name: serving}
---
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: quarter}
spec:
  namespaces: {names: [serving]}
  requests: [{name: gpu, exactly: {poolName: exclusive, capacityRequests: [{name: memory, amount: 10Gi}]}}]
`)
	t.Run("every device is exclusive there, and needs no selector", func(t *testing.T) {
		e.eventually(t, &v1alpha1.GpuPool{}, "exclusive", v1alpha1.ConditionReady, "True/Ready")
		class := &resourcev1.DeviceClass{}
		if err := e.client.Get(t.Context(), client.ObjectKey{Name: "exclusive.gpupool.dev"}, class); err != nil || len(class.Spec.Selectors) != 1 {
			t.Errorf("got %+v, %v; want one selector", class.Spec, err)
		}
	})
	t.Run("asking for shared devices stalls with the gate's name", func(t *testing.T) {
		message := e.eventually(t, &v1alpha1.GpuPool{}, "shared", v1alpha1.ConditionStalled, "True/FeatureUnavailable")
		if !strings.Contains(message, "DRAConsumableCapacity") {
			t.Errorf("message is %q", message)
		}
	})
	t.Run("a template that would lose a part is not written at all", func(t *testing.T) {
		e.eventually(t, &v1alpha1.WorkloadProfile{}, "quarter", v1alpha1.ConditionTemplatesPublished, "False/FeatureUnavailable")
		e.eventually(t, &v1alpha1.WorkloadProfile{}, "quarter", v1alpha1.ConditionStalled, "True/FeatureUnavailable")
		template := &resourcev1.ResourceClaimTemplate{}
		if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: "serving", Name: "quarter"}, template); !apierrors.IsNotFound(err) {
			t.Errorf("got %+v, %v; want no template", template.Spec, err)
		}
	})
	t.Run("and the server is not asked again and again", func(t *testing.T) {
		before := e.writes.Writes()
		<-time.After(3 * time.Second)
		if diff := cmp.Diff(before, e.writes.Writes()); diff != "" {
			t.Errorf("writes at rest:\n%s", diff)
		}
	})
}

// environment is an operator on a server with settings of its own.
type environment struct {
	client client.Client
	writes operator.Recorder
}

func start(t *testing.T, gates map[string]bool) *environment {
	t.Helper()
	e := &environment{}
	running, err := cluster.Start(t.Context(), cluster.Options{Log: os.Stderr, Components: []cluster.Component{}, FeatureGates: gates})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	administrator, rights, err := install.Into(t.Context(), running)
	if err != nil {
		t.Fatal(err)
	}
	e.client = administrator
	stop, err := operator.Start(t.Context(), rights, &e.writes, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func (e *environment) apply(t *testing.T, text string) {
	t.Helper()
	if err := install.YAML(t.Context(), e.client, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until an object has a condition, written as status/reason, and returns its message.
func (e *environment) eventually(t *testing.T, object client.Object, name, conditionType, want string) string {
	t.Helper()
	var got *metav1.Condition
	for begun := time.Now(); time.Since(begun) < patience; <-time.After(50 * time.Millisecond) {
		if err := e.client.Get(t.Context(), client.ObjectKey{Name: name}, object); err != nil {
			t.Fatal(err)
		}
		var conditions []metav1.Condition
		switch o := object.(type) {
		case *v1alpha1.GpuPool:
			conditions = o.Status.Conditions
		case *v1alpha1.WorkloadProfile:
			conditions = o.Status.Conditions
		}
		got = meta.FindStatusCondition(conditions, conditionType)
		if got != nil && string(got.Status)+"/"+got.Reason == want {
			return got.Message
		}
	}
	t.Fatalf("%s of %s is %+v, want %s", conditionType, name, got, want)
	return ""
}
