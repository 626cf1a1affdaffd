package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

var _ = Describe("Health as kstatus reads it", func() {
	// health is what Flux and other users of kstatus say about an object.
	health := func(kind, name string) func() (status.Status, error) {
		return func() (status.Status, error) {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
			if err := k8s.Get(suiteContext, client.ObjectKey{Name: name}, object); err != nil {
				return "", err
			}
			result, err := status.Compute(object)
			if err != nil {
				return "", err
			}
			return result.Status, nil
		}
	}

	It("is in progress at first, current when served, failed only when a user must act", func() {
		pool := unique("health")
		profile := newProfile(pool, 1)
		Eventually(readProfile(profile)).Should(haveCondition("Accepted=False/PoolNotFound"))
		Expect(health("WorkloadProfile", profile)()).To(Equal(status.InProgressStatus), "the pool may still come")

		apply(poolYAML, pool, pool)
		DeferCleanup(func() { remove(&v1alpha1.GpuPool{ObjectMeta: named(pool)}) })
		Expect(health("GpuPool", pool)()).To(Equal(status.InProgressStatus), "from the first moment")
		Eventually(readPool(pool)).Should(haveCondition("DriverReady=False/TooFewNodes"))
		Expect(health("GpuPool", pool)()).To(Equal(status.InProgressStatus), "nodes may still come")
		Eventually(health("WorkloadProfile", profile)).Should(Equal(status.CurrentStatus))

		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		apply(poolYAML, pool, nodes)
		Eventually(readPool(pool)).Should(beReady())
		Expect(health("GpuPool", pool)()).To(Equal(status.CurrentStatus))

		apply(`
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: %s}
spec: {driver: {name: gpu.nvidia.com}, devices: {selectors: [{cel: {expression: "device."}}]}}
`, pool)
		Eventually(readPool(pool)).Should(haveCondition("Accepted=False/InvalidSelector"))
		Expect(health("GpuPool", pool)()).To(Equal(status.FailedStatus))

		apply(poolYAML, pool, nodes)
		Eventually(readPool(pool)).Should(beReady())
		Expect(health("GpuPool", pool)()).To(Equal(status.CurrentStatus))
	})

	It("is in progress before the operator has seen an object at all", Serial, func() {
		sharedOperator.stop()
		DeferCleanup(sharedOperator.start)
		pool := unique("unseen")
		apply(poolYAML, pool, "none")
		DeferCleanup(func() { remove(&v1alpha1.GpuPool{ObjectMeta: named(pool)}) })
		profile := newProfile(pool, 1)
		Expect(health("GpuPool", pool)()).To(Equal(status.InProgressStatus))
		Expect(health("WorkloadProfile", profile)()).To(Equal(status.InProgressStatus))
	})
})
