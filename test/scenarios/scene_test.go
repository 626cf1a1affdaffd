package scenarios_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/test/cluster"
	"github.com/gpupool/gpupool-operator/test/fakedriver"
	"github.com/gpupool/gpupool-operator/test/install"
)

// folder is where the manifests are.
var folder = filepath.Join(install.Root(), "docs", "scenarios")

// proven are the manifests that a spec is about.
var proven []string

// scenario is the spec of one manifest.
func scenario(manifest, text string, body func(s *scene)) bool {
	proven = append(proven, manifest)
	return Describe(manifest, func() {
		It(text, func() {
			expectEmpty()
			s := &scene{drivers: map[string]*driver{}}
			DeferCleanup(s.clear)
			body(s)
		})
	})
}

// scene is what one spec has put into the cluster. All of it goes with the spec.
type scene struct {
	drivers    map[string]*driver
	nodes      []string
	namespaces []*corev1.Namespace
	objects    []client.Object
	pods       []*corev1.Pod
}

// driver is a simulated driver, and the shape that it publishes on each node.
type driver struct {
	*fakedriver.Driver
	mu     sync.Mutex
	shapes map[string]*fakedriver.Shape
}

// machine is a node and what is built into it.
type machine struct {
	name        string
	labels      map[string]string
	allocatable corev1.ResourceList
	// publishes are the shapes of the drivers that run on the node, by the drivers' names.
	publishes map[string]string
}

// add makes nodes, with drivers that somebody else has installed on them, and waits for the drivers.
func (s *scene) add(machines ...machine) {
	GinkgoHelper()
	for _, m := range machines {
		for name, shape := range m.publishes {
			s.driver(name).publishes(m.name, shape)
		}
		node := cluster.Node{Name: m.name, Labels: m.labels, Allocatable: m.allocatable}
		Expect(running.AddNodes(suiteContext, node)).To(Succeed())
		s.nodes = append(s.nodes, m.name)
	}
	for _, m := range machines {
		for name := range m.publishes {
			Eventually(published(name, m.name)).Should(BeTrue(), "driver %s on node %s", name, m.name)
		}
	}
}

// driver is the driver of that name, started when it is first asked for.
func (s *scene) driver(name string) *driver {
	GinkgoHelper()
	if s.drivers[name] == nil {
		d := &driver{shapes: map[string]*fakedriver.Shape{}}
		var err error
		d.Driver, err = fakedriver.Start(suiteContext, running.Config, fakedriver.Options{
			Name: name, Mode: fakedriver.Always, Shape: d.shape,
		})
		Expect(err).NotTo(HaveOccurred())
		s.drivers[name] = d
	}
	return s.drivers[name]
}

func (d *driver) publishes(node, shape string) {
	GinkgoHelper()
	loaded, err := fakedriver.LoadShape(shape)
	Expect(err).NotTo(HaveOccurred())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shapes[node] = loaded
}

func (d *driver) shape(node *corev1.Node) *fakedriver.Shape {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shapes[node.Name]
}

// published says whether a driver has published all slices of a node.
func published(driver, node string) func() (bool, error) {
	return func() (bool, error) {
		all, err := slicesOf(node)
		own := slices.DeleteFunc(all, func(slice resourcev1.ResourceSlice) bool { return slice.Spec.Driver != driver })
		return len(own) > 0 && len(own) == int(own[0].Spec.Pool.ResourceSliceCount), err
	}
}

func slicesOf(node string) ([]resourcev1.ResourceSlice, error) {
	list := &resourcev1.ResourceSliceList{}
	err := k8s.List(suiteContext, list, client.MatchingFields{resourcev1.ResourceSliceSelectorNodeName: node})
	return list.Items, err
}

// namespace makes a namespace.
func (s *scene) namespace(name string, labels map[string]string) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	Expect(k8s.Create(suiteContext, namespace)).To(Succeed())
	s.namespaces = append(s.namespaces, namespace)
}

// apply applies a manifest of docs/scenarios.
func (s *scene) apply(manifest string) {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(folder, manifest))
	Expect(err).NotTo(HaveOccurred())
	s.applyYAML(string(content))
}

// applyYAML applies what a manifest only talks about.
func (s *scene) applyYAML(text string, args ...any) {
	GinkgoHelper()
	if len(args) > 0 {
		text = fmt.Sprintf(text, args...)
	}
	Expect(install.YAML(suiteContext, k8s, []byte(text))).To(Succeed())
	objects, err := install.Objects([]byte(text))
	Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		s.objects = append(s.objects, object)
	}
}

// install creates what somebody else has installed.
func (s *scene) install(object client.Object) {
	GinkgoHelper()
	Expect(k8s.Create(suiteContext, object)).To(Succeed())
	s.objects = append(s.objects, object)
}

// deviceClass is a class for all devices of a driver, as the vendors' charts install them.
func deviceClass(name, driver string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)},
		}}},
	}
}

// delete deletes an object, and waits until it is gone.
func (s *scene) delete(object client.Object) {
	GinkgoHelper()
	Expect(k8s.Delete(suiteContext, object)).To(Succeed())
	Eventually(existence(object)).Should(beNotFound())
}

// existence is the error of reading an object, for Eventually.
func existence(object client.Object) func() error {
	return func() error { return k8s.Get(suiteContext, client.ObjectKeyFromObject(object), object) }
}

// patch changes an object by a JSON merge patch.
func patch(object client.Object, text string) {
	GinkgoHelper()
	Expect(k8s.Patch(suiteContext, object, client.RawPatch(types.MergePatchType, []byte(text)))).To(Succeed())
}

// clear removes what the spec has made: pods while their drivers can still let them go, then the rest. It waits for all
// but namespaces and what the garbage collector removes, whose names no other spec uses.
func (s *scene) clear() {
	for _, pod := range s.pods {
		Expect(client.IgnoreNotFound(k8s.Delete(suiteContext, pod, client.GracePeriodSeconds(0)))).To(Succeed())
	}
	Eventually(count(&corev1.PodList{})).Should(BeZero(), "pods")
	for _, object := range slices.Backward(s.objects) {
		Expect(client.IgnoreNotFound(k8s.Delete(suiteContext, object))).To(Succeed())
	}
	for _, namespace := range s.namespaces {
		Expect(client.IgnoreNotFound(k8s.Delete(suiteContext, namespace))).To(Succeed())
	}
	for _, driver := range s.drivers {
		driver.Stop()
	}
	for _, node := range s.nodes {
		Expect(running.DeleteNode(suiteContext, node)).To(Succeed())
		left, err := slicesOf(node)
		Expect(err).NotTo(HaveOccurred())
		for i := range left {
			Expect(client.IgnoreNotFound(k8s.Delete(suiteContext, &left[i]))).To(Succeed())
		}
	}
}

// expectEmpty says that no spec has left anything that another one could notice.
func expectEmpty() {
	GinkgoHelper()
	for name, list := range map[string]client.ObjectList{
		"nodes":            &corev1.NodeList{},
		"pods":             &corev1.PodList{},
		"ResourceSlices":   &resourcev1.ResourceSliceList{},
		"DeviceTaintRules": &resourcev1.DeviceTaintRuleList{},
		"GpuPools":         &v1alpha1.GpuPoolList{},
		"WorkloadProfiles": &v1alpha1.WorkloadProfileList{},
	} {
		Expect(count(list)()).To(BeZero(), name)
	}
}

// count is how many objects of a kind there are.
func count(list client.ObjectList) func() (int, error) {
	return func() (int, error) {
		if err := k8s.List(suiteContext, list); err != nil {
			return 0, err
		}
		return meta.LenList(list), nil
	}
}
