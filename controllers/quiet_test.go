package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/test/operator"
)

var _ = Describe("At rest", Serial, func() {
	It("the operator sends no write, when everything is applied again and reconciled again, and after a restart", func() {
		nodes, _ := newNodes(2, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		profile := newProfile(pool, 2)
		namespace := newNamespace(map[string]string{"profile": profile})
		newNamespace(map[string]string{"profile": profile})
		pod := newPod(namespace, profile)
		Eventually(read(pod)).Should(HaveField("Status.Phase", corev1.PodRunning))
		Eventually(readPool(pool)).Should(And(beReady(), haveDevices(16, 2, 14, 0), haveClaims(1, 0)))
		Eventually(readProfile(profile)).Should(And(beReady(), haveNamespaces(2, 2)))
		settle(requests)

		By("applying everything again")
		before := requests.Writes()
		apply(poolYAML, pool, nodes)
		apply(profileYAML, profile, pool, 2)
		By("reconciling everything again")
		for _, object := range []client.Object{classNamed(pool + ".gpupool.dev"), templateIn(namespace, profile)} {
			touch(object)
		}
		Consistently(requests.Writes).Should(Equal(before))

		By("restarting the operator")
		second := &operator.Recorder{}
		DeferCleanup(startOperator(rights, second))
		Consistently(second.Writes).Should(BeEmpty())
	})
})

// touch changes an annotation that the operator has no opinion on, which makes it compare the object again.
func touch(object client.Object) {
	GinkgoHelper()
	Expect(get(object)()).To(Succeed())
	patch := client.MergeFrom(object.DeepCopyObject().(client.Object))
	object.SetAnnotations(map[string]string{"touched": "yes"})
	Expect(k8s.Patch(suiteContext, object, patch)).To(Succeed())
}

// settle waits until an operator has sent no write for a while.
func settle(of *operator.Recorder) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		before := of.Writes()
		g.Consistently(of.Writes).WithTimeout(calm / 2).Should(Equal(before))
	}).Should(Succeed())
}

var _ = Describe("A killed operator", Serial, func() {
	// crash runs an operator that dies after n writes, then one that lives, and returns how many writes the first one got
	// through.
	crash := func(n int, done func()) int {
		GinkgoHelper()
		dying := &operator.Recorder{}
		dying.CutAfter(n)
		stop := startOperator(rights, dying)
		settle(dying)
		stop()
		stop = startOperator(rights, &operator.Recorder{})
		done()
		stop()
		return len(dying.Writes())
	}

	It("ends in the same objects, wherever it was killed", func() {
		sharedOperator.stop()
		DeferCleanup(sharedOperator.start)
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")

		for n := 0; ; n++ {
			By("killing it after another write")
			pool, profile := unique("pool"), unique("profile")
			first := newNamespace(map[string]string{"profile": profile})
			second := newNamespace(map[string]string{"profile": profile})
			apply(poolYAML, pool, nodes)
			apply(profileYAML, profile, pool, 1)
			got := crash(n, func() {
				Eventually(readPool(pool)).Should(And(beReady(), haveDevices(8, 0, 8, 0)))
				Eventually(readProfile(profile)).Should(And(beReady(), haveNamespaces(2, 2)))
			})
			Expect(read(classNamed(pool + ".gpupool.dev"))()).To(HaveField("Spec.Selectors", HaveLen(3)))
			for _, namespace := range []string{first, second} {
				Expect(read(templateIn(namespace, profile))()).To(HaveField("OwnerReferences", HaveLen(1)))
			}

			By("killing it in the middle of a replacement")
			apply(profileYAML, profile, pool, 3)
			got += crash(n, func() {
				Eventually(readProfile(profile)).Should(And(beReady(), haveNamespaces(2, 2)))
			})
			for _, namespace := range []string{first, second} {
				Expect(read(templateIn(namespace, profile))()).To(HaveField("Spec.Spec.Devices.Requests", ConsistOf(
					HaveField("Exactly.Count", BeEquivalentTo(3)))))
			}
			remove(&v1alpha1.WorkloadProfile{ObjectMeta: named(profile)})
			remove(&v1alpha1.GpuPool{ObjectMeta: named(pool)})
			if got < 2*n { // neither life had as many writes to send
				return
			}
		}
	})
})
