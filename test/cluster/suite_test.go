package cluster

import (
	"context"
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/client-go/kubernetes"
)

// envChild makes the test binary start a cluster, say what belongs to it, and wait to be killed.
const envChild = "GPUPOOL_TEST_CLUSTER_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(envChild) != "" {
		runChild()
	}
	os.Exit(m.Run())
}

// auditPolicy records who asked for what, without bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

var (
	shared *Cluster
	client *kubernetes.Clientset
)

func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	if os.Getenv(EnvKubeconfig) != "" {
		t.Skipf("tests how a cluster is started, and %s says to start none", EnvKubeconfig)
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "Local cluster")
}

var _ = BeforeSuite(func() {
	// The specs' context ends with the node that gets it, and the cluster has to outlive this one.
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	var err error
	shared, err = Start(ctx, Options{Log: GinkgoWriter, AuditPolicy: auditPolicy})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(shared.Stop)
	client, err = kubernetes.NewForConfig(shared.Config)
	Expect(err).NotTo(HaveOccurred())
})

// runChild starts a cluster with little in it and never returns.
func runChild() {
	c, err := Start(context.Background(), Options{Log: os.Stderr, Components: []Component{Kwok}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.Dir())
	for _, pid := range c.pids() {
		fmt.Println(pid)
	}
	fmt.Println("ready")
	select {}
}

// pids are all processes of the cluster.
func (c *Cluster) pids() []int {
	pids := []int{c.group.anchor.Process.Pid, c.group.watchdog.Process.Pid}
	for _, p := range c.processes {
		pids = append(pids, p.cmd.Process.Pid)
	}
	return pids
}
