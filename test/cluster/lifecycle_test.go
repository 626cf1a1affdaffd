package cluster

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// goneWithin is long since whoever inherits orphaned processes may take seconds to notice that they ended.
const goneWithin = 30 * time.Second

var _ = Describe("A cluster's life", func() {
	DescribeTable("ends with the process that owns it", func(ctx SpecContext, signal syscall.Signal) {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), envChild+"=1")
		child.Stderr = GinkgoWriter
		stdout, err := child.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(child.Start()).To(Succeed())
		DeferCleanup(func() { _ = child.Process.Kill() })

		lines := bufio.NewScanner(stdout)
		Expect(lines.Scan()).To(BeTrue(), "the child says nothing")
		dir := lines.Text()
		Expect(filepath.Join(dir, "etcd")).To(BeADirectory())
		var pids []int
		for lines.Scan() && lines.Text() != "ready" {
			pid, err := strconv.Atoi(lines.Text())
			Expect(err).NotTo(HaveOccurred())
			pids = append(pids, pid)
		}
		Expect(running(pids)).To(Equal(pids))
		Expect(pids).To(HaveLen(5), "two shells, etcd, kube-apiserver and kwok")

		Expect(child.Process.Signal(signal)).To(Succeed())
		Expect(child.Wait()).To(MatchError(ContainSubstring(signal.String())))
		Eventually(ctx, func() []int { return running(pids) }).WithTimeout(goneWithin).Should(BeEmpty())
		Eventually(ctx, dir).WithTimeout(goneWithin).ShouldNot(BeADirectory())
	},
		Entry("interrupted by Ctrl-C", syscall.SIGINT),
		Entry("killed without a chance to clean up", syscall.SIGKILL),
	)

	It("runs beside others and ends with its context", func(ctx SpecContext) {
		life, cancel := context.WithCancel(context.Background())
		defer cancel()
		other, err := Start(life, Options{
			Log:           GinkgoWriter,
			Components:    []Component{},
			FeatureGates:  map[string]bool{"DRAResourcePoolStatus": true},
			RuntimeConfig: map[string]string{"resource.k8s.io/v1alpha3": "true"},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(other.Stop)
		otherClient, err := kubernetes.NewForConfig(other.Config)
		Expect(err).NotTo(HaveOccurred())

		By("keeping their objects apart")
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "only-here"}}
		_, err = otherClient.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = client.CoreV1().Namespaces().Get(ctx, namespace.Name, metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)

		By("serving what only one of them was told to")
		const alpha = "resource.k8s.io/v1alpha3"
		Expect(otherClient.Discovery().ServerResourcesForGroupVersion(alpha)).To(
			HaveField("APIResources", ContainElement(HaveField("Kind", "ResourcePoolStatusRequest"))))
		_, err = client.Discovery().ServerResourcesForGroupVersion(alpha)
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)

		By("accepting nodes without a controller manager")
		Expect(other.AddNodes(ctx, Node{Name: "node-1"})).To(Succeed())
		node, err := otherClient.CoreV1().Nodes().Get(ctx, "node-1", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(node.Spec.Taints).To(BeEmpty())

		pids := other.pids()
		cancel()
		Eventually(ctx, func() []int { return running(pids) }).WithTimeout(goneWithin).Should(BeEmpty())
		Eventually(ctx, other.Dir).WithTimeout(goneWithin).ShouldNot(BeADirectory())
		Expect(running(shared.pids())).To(Equal(shared.pids()))
	})

	It("fails with the log of the component that did not start, and leaves nothing", func() {
		base := GinkgoT().TempDir()
		GinkgoT().Setenv("TMPDIR", base)
		_, err := Start(context.Background(), Options{
			Components:   []Component{},
			FeatureGates: map[string]bool{"NoSuchGate": true},
		})
		Expect(err).To(MatchError(SatisfyAll(
			ContainSubstring("starting kube-apiserver"), ContainSubstring("unrecognized feature gate: NoSuchGate"))))
		Expect(os.ReadDir(base)).To(BeEmpty())
	})

	It("is continued from the same folder", func(ctx SpecContext) {
		options := Options{Log: GinkgoWriter, Components: []Component{}, Dir: GinkgoT().TempDir()}
		var token string
		for _, name := range []string{"first", "second"} {
			c, err := Start(context.Background(), options)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(c.Stop)
			again, err := kubernetes.NewForConfig(c.Config)
			Expect(err).NotTo(HaveOccurred())
			if name == "first" {
				token = createAccount(ctx, c, again)
			} else {
				By("accepting the tokens of before")
				config := *c.Config
				config.BearerToken = token
				account, err := kubernetes.NewForConfig(&config)
				Expect(err).NotTo(HaveOccurred())
				_, err = account.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
				Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			}
			Expect(c.Stop()).To(Succeed())
		}
	})
})

// createAccount makes a ServiceAccount and returns a token of it.
func createAccount(ctx context.Context, c *Cluster, client kubernetes.Interface) string {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "somebody"}}
	_, err := client.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	config, err := c.ServiceAccountConfig(ctx, "default", "somebody")
	Expect(err).NotTo(HaveOccurred())
	return config.BearerToken
}

// running are those of the processes that exist.
func running(pids []int) []int {
	var alive []int
	for _, pid := range pids {
		if !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			alive = append(alive, pid)
		}
	}
	return alive
}
