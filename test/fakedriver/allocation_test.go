package fakedriver_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

var _ = Describe("Allocation by the scheduler", func() {
	It("gives each of eight pods a device, and the ninth nothing", func(ctx SpecContext) {
		s := newScene(ctx, "eight", 1)
		start(s.options(load("nvidia-h100-8")))
		s.published(ctx, 1)
		for i := range 9 {
			s.createPod(ctx, fmt.Sprintf("pod-%d", i))
		}
		running := func() int {
			pods, err := client.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			count := 0
			for _, pod := range pods.Items {
				if pod.Status.Phase == corev1.PodRunning {
					count++
				}
			}
			return count
		}
		Eventually(running).WithTimeout(soon).Should(Equal(8))
		Consistently(running).WithTimeout(aWhile).Should(Equal(8))

		claims, err := client.ResourceV1().ResourceClaims(s.name).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		devices := sets.New[string]()
		for _, claim := range claims.Items {
			if claim.Status.Allocation != nil {
				Expect(claim.Status.Allocation.Devices.Results).To(HaveExactElements(
					SatisfyAll(HaveField("Driver", s.driver), HaveField("Pool", s.nodes[0]))))
				devices.Insert(claim.Status.Allocation.Devices.Results[0].Device)
			}
		}
		Expect(devices).To(HaveLen(8))
	})

	It("gives nothing from a pool that is published by half", func(ctx SpecContext) {
		s := newScene(ctx, "half", 1)
		driver := start(s.options(load("nvidia")))
		s.published(ctx, 3)
		Expect(driver.PublishFirst(ctx, s.nodes[0], 2)).To(Succeed())
		Expect(s.slices(ctx)).To(HaveEach(HaveField("Spec.Pool.ResourceSliceCount", BeEquivalentTo(3))))
		Expect(s.slices(ctx)).To(HaveLen(2))
		s.createPod(ctx, "waiting")
		Consistently(s.phaseOf(ctx, "waiting")).WithTimeout(2 * aWhile).Should(Equal(corev1.PodPending))

		Expect(driver.Finish(ctx, s.nodes[0])).To(Succeed())
		Expect(s.generations(ctx)).To(HaveExactElements(BeEquivalentTo(2), BeEquivalentTo(2), BeEquivalentTo(2)))
		Eventually(s.phaseOf(ctx, "waiting")).WithTimeout(soon).Should(Equal(corev1.PodRunning))
	})

	It("gives nothing in the middle of a generation bump", func(ctx SpecContext) {
		s := newScene(ctx, "bump", 1)
		driver := start(s.options(load("nvidia")))
		s.published(ctx, 3)
		Expect(driver.Bump(ctx, s.nodes[0])).To(Succeed())
		Expect(s.generations(ctx)).To(Equal([]int64{2, 2, 2}))

		Expect(driver.BumpFirst(ctx, s.nodes[0], 1)).To(Succeed())
		Expect(s.generations(ctx)).To(Equal([]int64{3, 2, 2}))
		s.createPod(ctx, "waiting")
		Consistently(s.phaseOf(ctx, "waiting")).WithTimeout(2 * aWhile).Should(Equal(corev1.PodPending))

		Expect(driver.Finish(ctx, s.nodes[0])).To(Succeed())
		Expect(s.generations(ctx)).To(Equal([]int64{3, 3, 3}))
		Eventually(s.phaseOf(ctx, "waiting")).WithTimeout(soon).Should(Equal(corev1.PodRunning))
	})

	It("gives nothing from an invalid pool", func(ctx SpecContext) {
		s := newScene(ctx, "invalid", 1)
		driver := start(s.options(load("example-gpu")))
		s.published(ctx, 1)
		Expect(driver.Duplicate(ctx, s.nodes[0], "gpu-0")).To(Succeed())
		Expect(s.devices(ctx)).To(HaveExactElements("gpu-0", "gpu-1", "gpu-0"))
		s.createPod(ctx, "waiting")
		Consistently(s.phaseOf(ctx, "waiting")).WithTimeout(2 * aWhile).Should(Equal(corev1.PodPending))
		Expect(driver.RemoveDuplicates(ctx, s.nodes[0])).To(Succeed())
		Eventually(s.phaseOf(ctx, "waiting")).WithTimeout(soon).Should(Equal(corev1.PodRunning))
	})

	It("heeds taints on devices", func(ctx SpecContext) {
		s := newScene(ctx, "taints", 1)
		driver := start(s.options(load("example-gpu")))
		s.published(ctx, 1)
		const key = "taints.example.com/health"
		none := resourcev1.DeviceTaint{Key: key, Effect: resourcev1.DeviceTaintEffectNone}
		noSchedule := resourcev1.DeviceTaint{Key: key, Effect: resourcev1.DeviceTaintEffectNoSchedule}
		Expect(driver.SetTaint(ctx, s.nodes[0], "gpu-0", none)).To(Succeed())
		Expect(driver.SetTaint(ctx, s.nodes[0], "gpu-0", noSchedule)).To(Succeed())
		Expect(driver.SetTaint(ctx, s.nodes[0], "gpu-1", noSchedule)).To(Succeed())
		slice := s.slices(ctx)[0]
		Expect(slice.Spec.Pool.Generation).To(BeEquivalentTo(1), "one update needs no new generation")
		Expect(slice.Spec.Devices[0].Taints).To(HaveExactElements(
			HaveField("Effect", none.Effect), HaveField("Effect", noSchedule.Effect)))

		s.createPod(ctx, "waiting")
		Consistently(s.phaseOf(ctx, "waiting")).WithTimeout(2 * aWhile).Should(Equal(corev1.PodPending))
		Expect(driver.RemoveTaint(ctx, s.nodes[0], "gpu-0", key, noSchedule.Effect)).To(Succeed())
		Eventually(s.phaseOf(ctx, "waiting")).WithTimeout(soon).Should(Equal(corev1.PodRunning))
		Expect(driver.SetTaint(ctx, s.nodes[0], "gpu-9", none)).To(MatchError(ContainSubstring("no device gpu-9")))
	})

	It("keeps an allocation whose device has vanished", func(ctx SpecContext) {
		s := newScene(ctx, "orphan", 1)
		driver := start(s.options(load("example-gpu")))
		s.published(ctx, 1)
		s.runningPod(ctx, "first")
		Expect(driver.WithdrawDevice(ctx, s.nodes[0], "gpu-0")).To(Succeed())
		Expect(s.devices(ctx)).To(HaveExactElements("gpu-1"))
		claims, err := client.ResourceV1().ResourceClaims(s.name).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(claims.Items[0].Status.Allocation.Devices.Results[0].Device).To(Equal("gpu-0"))
		Expect(driver.RestoreDevice(ctx, s.nodes[0], "gpu-0")).To(Succeed())
		Expect(s.devices(ctx)).To(HaveExactElements("gpu-0", "gpu-1"))
	})

	It("sees other states that drivers make", func(ctx SpecContext) {
		s := newScene(ctx, "states", 1)
		driver := start(s.options(load("example-gpu")))
		s.published(ctx, 1)

		By("another shape on the same node")
		Expect(driver.SetShape(ctx, s.nodes[0], load("example-gpu-4"))).To(Succeed())
		Expect(s.devices(ctx)).To(HaveLen(4))
		Expect(driver.SetShape(ctx, s.nodes[0], parse(sharedShape))).To(MatchError(ContainSubstring("cannot replace")))
		Expect(driver.SetShape(ctx, s.nodes[0], nil)).To(Succeed())
		Expect(s.devices(ctx)).To(HaveLen(2))

		By("fewer slices than announced")
		Expect(driver.Announce(ctx, s.nodes[0], 2)).To(Succeed())
		Expect(s.slices(ctx)[0].Spec.Pool.ResourceSliceCount).To(BeEquivalentTo(2))
		Expect(driver.Announce(ctx, s.nodes[0], 0)).To(Succeed())
		Expect(s.slices(ctx)[0].Spec.Pool.ResourceSliceCount).To(BeEquivalentTo(1))

		By("no slices, although the driver is alive")
		Expect(driver.Withdraw(ctx, s.nodes[0])).To(Succeed())
		Consistently(func() []string { return s.devices(ctx) }).WithTimeout(aWhile).Should(BeEmpty())
		Expect(driver.Bump(ctx, s.nodes[0])).To(MatchError(ContainSubstring("held or withdrawn")))
		Expect(driver.Restore(ctx, s.nodes[0])).To(Succeed())
		Expect(s.devices(ctx)).To(HaveLen(2))

		By("slices that the test writes itself")
		driver.Hold(s.nodes[0])
		slice := s.slices(ctx)[0]
		slice.Spec.Pool.Generation = 7
		_, err := client.ResourceV1().ResourceSlices().Update(ctx, &slice, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Consistently(func() []int64 { return s.generations(ctx) }).WithTimeout(aWhile).Should(Equal([]int64{7}))
		Expect(driver.Finish(ctx, s.nodes[0])).To(Succeed())

		By("refusing what is impossible")
		Expect(driver.PublishFirst(ctx, s.nodes[0], 1)).To(MatchError(ContainSubstring("has 1 slices")))
		Expect(driver.Bump(ctx, "no-such-pool")).To(MatchError(ContainSubstring("not alive")))
	})
})

var _ = Describe("Prepared devices", func() {
	It("hold a deleted pod until the driver is back", func(ctx SpecContext) {
		s := newScene(ctx, "stranded", 1)
		options := s.byPods(s.options(load("example-gpu")))
		options.WithdrawAfter = 300 * time.Millisecond
		start(options)
		s.createDriverPods(ctx)
		s.published(ctx, 1)
		s.runningPod(ctx, "consumer")

		s.deleteDriverPods(ctx)
		s.published(ctx, 0)
		s.deletePod(ctx, "consumer")
		Consistently(s.phaseOf(ctx, "consumer")).WithTimeout(2 * aWhile).Should(Equal(corev1.PodRunning))
		pod := s.getPod(ctx, "consumer")
		Expect(pod.DeletionTimestamp).NotTo(BeNil())
		Expect(pod.Finalizers).To(HaveExactElements(s.driver + "/prepared"))

		s.createDriverPods(ctx)
		s.expectGone(ctx, "consumer")
	})

	It("are let go when the pod is deleted or completes, whoever else holds it", func(ctx SpecContext) {
		s := newScene(ctx, "letgo", 1)
		start(s.options(load("example-gpu")))
		s.published(ctx, 1)
		s.runningPod(ctx, "deleted")
		s.deletePod(ctx, "deleted")
		s.expectGone(ctx, "deleted")

		s.runningPod(ctx, "completed")
		s.patchPod(ctx, "completed", `{"metadata":{
			"finalizers":["other.example.com/held"],
			"annotations":{"test.gpupool.dev/complete-after":"100ms"}}}`)
		Eventually(s.phaseOf(ctx, "completed")).WithTimeout(soon).Should(Equal(corev1.PodSucceeded))
		Expect(s.getPod(ctx, "completed").Finalizers).To(HaveExactElements("other.example.com/held"))
		s.patchPod(ctx, "completed", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["other.example.com/held"]}}`)
	})

	It("die with the node", func(ctx SpecContext) {
		s := newScene(ctx, "nodegone", 1)
		start(s.options(load("example-gpu")))
		s.published(ctx, 1)
		s.runningPod(ctx, "consumer")
		Expect(local.DeleteNode(ctx, s.nodes[0])).To(Succeed())
		s.deletePod(ctx, "consumer")
		Eventually(func() []string {
			pods, err := client.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			var finalizers []string
			for _, pod := range pods.Items {
				finalizers = append(finalizers, pod.Finalizers...)
			}
			return finalizers
		}).WithTimeout(soon).Should(BeEmpty())
	})
})
