package fakedriver_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gpupool/gpupool-operator/test/fakedriver"
)

const sharedShape = `apiVersion: resource.k8s.io/v1
kind: ResourceSlice
spec:
  driver: fabric.example.com
  allNodes: true
  pool: {name: fabric}
  devices:
  - name: port-0
  - name: port-1
`

var _ = Describe("Publishing", func() {
	It("has shapes that the API server accepts as they are", func(ctx SpecContext) {
		for _, name := range fakedriver.BuiltinShapes() {
			rendered, err := load(name).Render("shapes.example.com", "node-1")
			Expect(err).NotTo(HaveOccurred())
			for i := range rendered {
				rendered[i].GenerateName = name + "-"
				sent := rendered[i].Spec.DeepCopy()
				stored, err := client.ResourceV1().ResourceSlices().
					Create(ctx, &rendered[i], metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				Expect(err).NotTo(HaveOccurred(), name)
				Expect(stored.Spec.Devices).To(HaveLen(len(sent.Devices)), name)
			}
		}
	})

	It("follows the driver's pods, and belongs to the node", func(ctx SpecContext) {
		s := newScene(ctx, "follows", 2)
		start(s.byPods(s.options(load("example-gpu-partitioned"))))
		Consistently(func() []resourcev1.ResourceSlice { return s.slices(ctx) }).WithTimeout(aWhile).Should(BeEmpty())

		s.createDriverPods(ctx)
		for _, slice := range s.published(ctx, 4) {
			node, err := client.CoreV1().Nodes().Get(ctx, *slice.Spec.NodeName, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(slice.OwnerReferences).To(HaveExactElements(HaveField("UID", node.UID)))
			Expect(slice.Spec.Pool).To(Equal(resourcev1.ResourcePool{
				Name: node.Name, Generation: 1, ResourceSliceCount: 2,
			}))
		}
		s.deleteDriverPods(ctx)
		s.published(ctx, 0)
	})

	It("leaves the slices of a deleted node to the garbage collector", func(ctx SpecContext) {
		s := newScene(ctx, "collected", 2)
		start(s.options(load("example-gpu")))
		s.published(ctx, 2)
		Expect(local.DeleteNode(ctx, s.nodes[1])).To(Succeed())
		Expect(s.published(ctx, 1)).To(HaveExactElements(HaveField("Spec.Pool.Name", s.nodes[0])))
	})

	It("publishes a shared pool once", func(ctx SpecContext) {
		s := newScene(ctx, "fabric", 2)
		driver := start(s.options(parse(sharedShape)))
		slices := s.published(ctx, 1)
		Expect(slices[0].OwnerReferences).To(BeEmpty())
		Expect(slices[0].Spec.Pool.Name).To(Equal("fabric"))
		Expect(driver.WithdrawDevice(ctx, "fabric", "port-1")).To(Succeed())
		Expect(s.devices(ctx)).To(HaveExactElements("port-0"))
	})

	It("repairs what somebody else did to its slices", func(ctx SpecContext) {
		s := newScene(ctx, "repaired", 1)
		driver := start(s.options(load("example-gpu")))
		before := s.published(ctx, 1)[0]
		Expect(driver.Wipe(ctx, s.nodes[0])).To(Succeed())
		after := s.published(ctx, 1)[0]
		Expect(after.UID).NotTo(Equal(before.UID))

		stray := after.DeepCopy()
		stray.ObjectMeta = metav1.ObjectMeta{Name: "stray-" + s.nodes[0]}
		_, err := client.ResourceV1().ResourceSlices().Create(ctx, stray, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() bool {
			_, err := client.ResourceV1().ResourceSlices().Get(ctx, stray.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}).WithTimeout(soon).Should(BeTrue())
	})

	It("sends nothing when nothing happens", func(ctx SpecContext) {
		s := newScene(ctx, "quiet", 2)
		var requests atomic.Int64
		config := rest.CopyConfig(local.Config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if !strings.Contains(request.URL.RawQuery, "watch=") {
					requests.Add(1)
				}
				return next.RoundTrip(request)
			})
		})
		// Taints without a time are completed by the server, so what is stored differs from what was sent.
		driver, err := fakedriver.Start(background, config, s.options(load("nvidia-static")))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(driver.Stop)
		s.published(ctx, 2)
		last := int64(0)
		Eventually(func() bool {
			now := requests.Load()
			settled := now == last
			last = now
			return settled
		}).WithTimeout(soon).WithPolling(aWhile / 4).MustPassRepeatedly(4).Should(BeTrue())
		Consistently(requests.Load).WithTimeout(2 * aWhile).Should(Equal(last))
	})

	It("leaves nothing running behind", func(ctx SpecContext) {
		s := newScene(ctx, "leak", 1)
		before := gleak.Goroutines()
		driver, err := fakedriver.Start(background, local.Config, s.options(load("example-gpu")))
		Expect(err).NotTo(HaveOccurred())
		s.published(ctx, 1)
		driver.Stop()
		driver.Stop()
		// The connections belong to client-go, which keeps them for the next client.
		Eventually(gleak.Goroutines).WithTimeout(soon).ShouldNot(gleak.HaveLeaked(before,
			gleak.IgnoringInBacktrace("net/http.(*Transport)"), gleak.IgnoringInBacktrace("http2")))
		Expect(s.slices(ctx)).To(HaveLen(1), "a driver that ends withdraws nothing")
	})
})

var _ = Describe("Identity", func() {
	It("writes as the driver's own pod, and says what it may not do", func(ctx SpecContext) {
		s := newScene(ctx, "identity", 1)
		options := s.byPods(s.options(load("example-gpu")))
		options.Identity = func(ctx context.Context, pod *corev1.Pod) (*rest.Config, error) {
			return local.PodConfig(ctx, pod)
		}
		driver := start(options)
		s.createDriverPods(ctx)
		Eventually(func() error { return driver.PublishError(s.nodes[0]) }).WithTimeout(soon).
			Should(MatchError(ContainSubstring("forbidden")))
		Expect(s.slices(ctx)).To(BeEmpty())

		s.grantDriverRights(ctx)
		slices := s.published(ctx, 1)
		Eventually(func() error { return driver.PublishError(s.nodes[0]) }).WithTimeout(soon).Should(Succeed())
		Expect(slices[0].Spec.Driver).To(Equal(s.driver))
		s.runningPod(ctx, "consumer")
	})
})

// grantDriverRights gives the ServiceAccount of the driver's pods what drivers usually have.
func (s scene) grantDriverRights(ctx context.Context) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
			{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims"}, Verbs: []string{"get"}},
			{
				APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceslices"},
				Verbs: []string{"list", "watch", "create", "update", "delete"},
			},
		},
	}
	_, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: s.name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.name, Name: "default"}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
