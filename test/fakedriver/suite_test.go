package fakedriver_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/gpupool/gpupool-operator/test/cluster"
	"github.com/gpupool/gpupool-operator/test/fakedriver"
)

const (
	soon = 20 * time.Second
	// aWhile is how long something that must not happen is given to happen.
	aWhile = time.Second
)

var (
	local  *cluster.Cluster
	client *kubernetes.Clientset
	// background outlives every spec.
	background context.Context
)

func TestFakeDriver(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "Simulated driver")
}

var _ = BeforeSuite(func() {
	var cancel context.CancelFunc
	background, cancel = context.WithCancel(context.Background())
	DeferCleanup(cancel)
	var err error
	local, err = cluster.Start(background, cluster.Options{Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(local.Stop)
	client, err = kubernetes.NewForConfig(local.Config)
	Expect(err).NotTo(HaveOccurred())
})

// Every spec has a scene of its own: a namespace, a driver and a DeviceClass, and its own nodes. The name has a random
// end, so that specs can run again on the same cluster.
type scene struct {
	name   string
	driver string
	nodes  []string
}

func newScene(ctx context.Context, name string, nodes int) scene {
	GinkgoHelper()
	s := scene{name: name + "-" + rand.String(5)}
	s.driver = s.name + ".example.com"
	DeferCleanup(s.remove)
	_, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	for i := range nodes {
		s.nodes = append(s.nodes, fmt.Sprintf("%s-%d", s.name, i+1))
		node := cluster.Node{Name: s.nodes[i], Labels: map[string]string{"scene": s.name}}
		Expect(local.AddNodes(ctx, node)).To(Succeed())
	}
	class := &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", s.driver)},
		}}},
	}
	_, err = client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.ResourceV1().ResourceClaimTemplates(s.name).Create(ctx, &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{
			Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
				Name:    "gpu",
				Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: s.name},
			}}},
		}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return s
}

// remove takes the scene away, after its driver was stopped.
func (s scene) remove(ctx context.Context) {
	GinkgoHelper()
	pods, err := client.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, pod := range pods.Items {
		_, err := client.CoreV1().Pods(s.name).
			Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		Expect(ignoreNotFound(err)).To(Succeed())
	}
	// Without a node nobody would stop them.
	atOnce := metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}
	Expect(client.CoreV1().Pods(s.name).DeleteCollection(ctx, atOnce, metav1.ListOptions{})).To(Succeed())
	nodes := metav1.ListOptions{LabelSelector: "scene=" + s.name}
	Expect(client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, nodes)).To(Succeed())
	Expect(client.ResourceV1().DeviceClasses().Delete(ctx, s.name, metav1.DeleteOptions{})).To(Succeed())
	slices := metav1.ListOptions{FieldSelector: resourcev1.ResourceSliceSelectorDriver + "=" + s.driver}
	Expect(client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, slices)).To(Succeed())
	Expect(client.CoreV1().Namespaces().Delete(ctx, s.name, metav1.DeleteOptions{})).To(Succeed())
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// options describe a driver that is always alive on the scene's nodes.
func (s scene) options(shape *fakedriver.Shape) fakedriver.Options {
	return fakedriver.Options{
		Name:  s.driver,
		Mode:  fakedriver.Always,
		Nodes: labels.SelectorFromSet(labels.Set{"scene": s.name}),
		Shape: fakedriver.Everywhere(shape),
	}
}

// byPods changes options to a driver that is alive where its DaemonSet has Ready pods.
func (s scene) byPods(options fakedriver.Options) fakedriver.Options {
	options.Mode = fakedriver.WhileDriverPodReady
	options.Namespace = s.name
	options.PodLabels = labels.SelectorFromSet(labels.Set{"app": "driver"})
	return options
}

// start runs a driver until the spec ends.
func start(options fakedriver.Options) *fakedriver.Driver {
	GinkgoHelper()
	driver, err := fakedriver.Start(background, local.Config, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(driver.Stop)
	return driver
}

func load(name string) *fakedriver.Shape {
	GinkgoHelper()
	shape, err := fakedriver.LoadShape(name)
	Expect(err).NotTo(HaveOccurred())
	return shape
}

func parse(text string) *fakedriver.Shape {
	GinkgoHelper()
	shape, err := fakedriver.ParseShape("test", []byte(text))
	Expect(err).NotTo(HaveOccurred())
	return shape
}

// slices are those of the scene's driver, in the order of their names.
func (s scene) slices(ctx context.Context) []resourcev1.ResourceSlice {
	GinkgoHelper()
	list, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{
		FieldSelector: resourcev1.ResourceSliceSelectorDriver + "=" + s.driver,
	})
	Expect(err).NotTo(HaveOccurred())
	return list.Items
}

// published waits until the driver has published count slices.
func (s scene) published(ctx context.Context, count int) []resourcev1.ResourceSlice {
	GinkgoHelper()
	Eventually(func() int { return len(s.slices(ctx)) }).WithTimeout(soon).Should(Equal(count))
	return s.slices(ctx)
}

// devices are the names of all devices that the scene's driver publishes.
func (s scene) devices(ctx context.Context) []string {
	GinkgoHelper()
	var names []string
	for _, slice := range s.slices(ctx) {
		for _, device := range slice.Spec.Devices {
			names = append(names, device.Name)
		}
	}
	return names
}

// generations are the pool generations of the scene's slices, in the order of their names.
func (s scene) generations(ctx context.Context) []int64 {
	GinkgoHelper()
	var generations []int64
	for _, slice := range s.slices(ctx) {
		generations = append(generations, slice.Spec.Pool.Generation)
	}
	return generations
}

// createPod makes a pod that asks for one device.
func (s scene) createPod(ctx context.Context, name string) {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example.com/main:1",
				Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
			}},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("one")}},
		},
	}
	_, err := client.CoreV1().Pods(s.name).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (s scene) getPod(ctx context.Context, name string) *corev1.Pod {
	GinkgoHelper()
	pod, err := client.CoreV1().Pods(s.name).Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return pod
}

func (s scene) phaseOf(ctx context.Context, name string) func() corev1.PodPhase {
	return func() corev1.PodPhase { return s.getPod(ctx, name).Status.Phase }
}

// runningPod makes a pod that asks for one device and waits until it runs with the device prepared.
func (s scene) runningPod(ctx context.Context, name string) {
	GinkgoHelper()
	s.createPod(ctx, name)
	Eventually(s.phaseOf(ctx, name)).WithTimeout(soon).Should(Equal(corev1.PodRunning))
	Eventually(func() []string { return s.getPod(ctx, name).Finalizers }).
		WithTimeout(soon).Should(ContainElement(s.driver + "/prepared"))
}

func (s scene) patchPod(ctx context.Context, name, patch string) {
	GinkgoHelper()
	_, err := client.CoreV1().Pods(s.name).
		Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (s scene) deletePod(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(client.CoreV1().Pods(s.name).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
}

func (s scene) expectGone(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func() bool {
		_, err := client.CoreV1().Pods(s.name).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}).WithTimeout(soon).Should(BeTrue(), "pod %s stays", name)
}

// createDriverPods makes the DaemonSet of the scene's driver on the scene's nodes.
func (s scene) createDriverPods(ctx context.Context) {
	GinkgoHelper()
	podLabels := map[string]string{"app": "driver"}
	_, err := client.AppsV1().DaemonSets(s.name).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "driver"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: podLabels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"scene": s.name},
					Containers:   []corev1.Container{{Name: "plugin", Image: "registry.example.com/driver:1"}},
				},
			},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// deleteDriverPods removes the DaemonSet and waits until its pods are gone.
func (s scene) deleteDriverPods(ctx context.Context) {
	GinkgoHelper()
	Expect(client.AppsV1().DaemonSets(s.name).Delete(ctx, "driver", metav1.DeleteOptions{})).To(Succeed())
	Eventually(func(g Gomega) {
		pods, err := client.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{LabelSelector: "app=driver"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods.Items).To(BeEmpty())
	}).WithTimeout(soon).Should(Succeed())
}
