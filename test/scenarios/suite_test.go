package scenarios_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/test/cluster"
	"github.com/gpupool/gpupool-operator/test/install"
	"github.com/gpupool/gpupool-operator/test/operator"
)

var (
	suiteContext context.Context
	running      *cluster.Cluster
	k8s          client.Client // the cluster's administrator, without a cache
)

// soon is how long anything may take that the operator or Kubernetes has to do. It is a limit for broken code, not a
// measure; the garbage collector alone may need 40 seconds to learn of a new kind.
const soon = 90 * time.Second

func TestScenarios(t *testing.T) {
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "scenarios")
}

var _ = BeforeSuite(func() {
	var cancel context.CancelFunc
	suiteContext, cancel = context.WithCancel(context.Background())
	DeferCleanup(cancel)
	var rights *rest.Config
	var err error
	running, err = cluster.Start(suiteContext, cluster.Options{Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(running.Stop()).To(Succeed()) })

	k8s, rights, err = install.Into(suiteContext, running)
	Expect(err).NotTo(HaveOccurred())
	stop, err := operator.Start(suiteContext, rights, &operator.Recorder{}, GinkgoLogr)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(stop()).To(Succeed()) })
})
