package controllers_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/test/cluster"
	"github.com/gpupool/gpupool-operator/test/fakedriver"
	"github.com/gpupool/gpupool-operator/test/install"
	"github.com/gpupool/gpupool-operator/test/operator"
)

// The suite runs on a real control plane. The operator runs in this process, under the rights that config/rbac gives
// it.
var (
	suiteContext context.Context
	running      *cluster.Cluster
	k8s          client.Client      // the cluster's administrator, without a cache
	rights       *rest.Config       // the operator's own
	requests     *operator.Recorder // what the shared operator sent
)

const (
	// soon is how long anything may take that the operator or Kubernetes has to do. It is a limit for broken code, not a
	// measure; the garbage collector may need 30 seconds to learn of a new kind.
	soon = 45 * time.Second
	// calm is how long nothing must happen for the operator to be at rest.
	calm = 3 * time.Second
)

func TestControllers(t *testing.T) {
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(calm)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "controllers")
}

var _ = BeforeSuite(func() {
	var cancel context.CancelFunc
	suiteContext, cancel = context.WithCancel(context.Background())
	DeferCleanup(cancel)
	var err error
	running, err = cluster.Start(suiteContext, cluster.Options{Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(running.Stop()).To(Succeed()) })

	k8s, rights, err = install.Into(suiteContext, running)
	Expect(err).NotTo(HaveOccurred())

	requests = &operator.Recorder{}
	sharedOperator.start()
	DeferCleanup(func() { sharedOperator.stop() })
})

// sharedOperator is the operator that most specs share. A spec that must be alone stops it meanwhile.
var sharedOperator operatorProcess

type operatorProcess struct{ stop func() }

func (o *operatorProcess) start() { o.stop = startOperator(rights, requests) }

// startOperator runs the operator in this process and returns what stops it.
func startOperator(rights *rest.Config, writes *operator.Recorder) (stop func()) {
	stopped, err := operator.Start(suiteContext, rights, writes, GinkgoLogr)
	Expect(err).NotTo(HaveOccurred())
	return func() { Expect(stopped()).To(Succeed()) }
}

// apply applies YAML, as a GitOps tool does.
func apply(text string, args ...any) {
	GinkgoHelper()
	Expect(install.YAML(suiteContext, k8s, []byte(fmt.Sprintf(text, args...)))).To(Succeed())
}

// names makes names that no other spec uses.
var names struct {
	sync.Mutex
	last int
}

func unique(prefix string) string {
	names.Lock()
	defer names.Unlock()
	names.last++
	return fmt.Sprintf("%s-%03d", prefix, names.last)
}

// newNamespace makes a namespace that is deleted after the spec. Nobody waits for it: emptying one takes seconds.
func newNamespace(nsLabels map[string]string) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: unique("ns"), Labels: nsLabels}}
	Expect(k8s.Create(suiteContext, namespace)).To(Succeed())
	DeferCleanup(func() { Expect(client.IgnoreNotFound(k8s.Delete(suiteContext, namespace))).To(Succeed()) })
	return namespace.Name
}

// newNodes makes n nodes with a label of their own, served by a driver, and returns the label's value.
func newNodes(n int, driverName, shape string) (pool string, driver *fakedriver.Driver) {
	GinkgoHelper()
	pool = unique("nodes")
	for i := range n {
		name := fmt.Sprintf("%s-%d", pool, i)
		Expect(running.AddNodes(suiteContext, cluster.Node{Name: name, Labels: map[string]string{"pool": pool}})).To(Succeed())
		DeferCleanup(func() { Expect(running.DeleteNode(suiteContext, name)).To(Succeed()) })
	}
	return pool, serve(pool, driverName, shape)
}

// serve starts a driver on the nodes with a label, until the end of the spec.
func serve(pool, driverName, shape string) *fakedriver.Driver {
	GinkgoHelper()
	loaded, err := fakedriver.LoadShape(shape)
	Expect(err).NotTo(HaveOccurred())
	driver, err := fakedriver.Start(suiteContext, running.Config, fakedriver.Options{
		Name: driverName, Mode: fakedriver.Always, Shape: fakedriver.Everywhere(loaded),
		Nodes: labels.SelectorFromSet(labels.Set{"pool": pool}),
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(driver.Stop)
	return driver
}

// remove deletes an object and waits until it is gone.
func remove(object client.Object, options ...client.DeleteOption) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(k8s.Delete(suiteContext, object, options...))).To(Succeed())
	Eventually(get(object)).Should(beNotFound())
}

// newPod makes a pod that asks for a template, on the nodes of a pool.
func newPod(namespace, template string) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: unique("pod")},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "main", Image: "example.com/main",
				Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
			}},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}},
		},
	}
	Expect(k8s.Create(suiteContext, pod)).To(Succeed())
	DeferCleanup(func() { remove(pod, client.GracePeriodSeconds(0)) })
	return pod
}

func templateIn(namespace, name string) *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func classNamed(name string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name}
}

// label sets a label of a namespace, or takes it away if the value is empty.
func label(namespace, key, value string) {
	GinkgoHelper()
	object := &corev1.Namespace{ObjectMeta: named(namespace)}
	Expect(k8s.Get(suiteContext, client.ObjectKeyFromObject(object), object)).To(Succeed())
	patch := client.MergeFrom(object.DeepCopy())
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	object.Labels[key] = value
	if value == "" {
		delete(object.Labels, key)
	}
	Expect(k8s.Patch(suiteContext, object, patch)).To(Succeed())
}

type namespaceList = corev1.NamespaceList

func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: named(name)}
}

// waitASecond is for the few things that tell times apart by seconds only.
func waitASecond() {
	<-time.After(time.Second)
}
