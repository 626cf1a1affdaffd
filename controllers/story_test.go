package controllers_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

const (
	poolYAML = `
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: %[1]s}
spec:
  driver: {name: gpu.nvidia.com}
  nodes: {selectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [%[2]s]}]}]}
  devices: {models: ["NVIDIA H100*"], memory: {min: 75Gi}}
`
	profileYAML = `
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: %[1]s}
spec:
  namespaces: {selector: {matchLabels: {profile: %[1]s}}}
  requests: [{name: gpu, exactly: {poolName: %[2]s, count: %[3]d}}]
`
)

// newPool applies a pool of H100s on the nodes with a label and deletes it after the spec.
func newPool(nodes string) string {
	GinkgoHelper()
	name := unique("pool")
	apply(poolYAML, name, nodes)
	DeferCleanup(func() { remove(&v1alpha1.GpuPool{ObjectMeta: named(name)}) })
	return name
}

// newProfile applies a profile of count devices of a pool for the namespaces that are labelled with its name.
func newProfile(pool string, count int) string {
	GinkgoHelper()
	name := unique("profile")
	apply(profileYAML, name, pool, count)
	DeferCleanup(func() { remove(&v1alpha1.WorkloadProfile{ObjectMeta: named(name)}) })
	return name
}

var _ = Describe("A pool and a profile", func() {
	It("become a class, templates and allocated devices, and count them", func() {
		nodes, _ := newNodes(2, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		profile := newProfile(pool, 8)
		namespace := newNamespace(map[string]string{"profile": profile})

		By("publishing the class and the template")
		Eventually(readPool(pool)).Should(And(beReady(), haveDevices(16, 0, 16, 0)))
		Eventually(readProfile(profile)).Should(And(beReady(), haveNamespaces(1, 1)))
		class := classNamed(pool + ".gpupool.dev")
		Expect(read(class)()).To(HaveField("Spec.Selectors", HaveLen(3)))
		template := templateIn(namespace, profile)
		Expect(read(template)()).To(HaveField("Spec.Spec.Devices.Requests", ConsistOf(
			HaveField("Exactly", HaveValue(And(HaveField("DeviceClassName", class.Name), HaveField("Count", BeEquivalentTo(8))))),
		)))

		By("allocating whole nodes until none is left")
		pods := []*corev1.Pod{newPod(namespace, profile), newPod(namespace, profile)}
		for _, pod := range pods {
			Eventually(read(pod)).Should(HaveField("Status.Phase", corev1.PodRunning))
		}
		Eventually(readPool(pool)).Should(And(haveDevices(16, 16, 0, 0), haveClaims(2, 0)))
		third := newPod(namespace, profile)
		Eventually(readPool(pool)).Should(And(haveDevices(16, 16, 0, 0), haveClaims(2, 1)))
		Eventually(readProfile(profile)).Should(HaveField("Status.Claims", Equal(
			&v1alpha1.ClaimCounts{Allocated: ptr.To(int32(2)), Pending: ptr.To(int32(1))})))
		Expect(readPool(pool)()).To(beReady(), "a full cluster is healthy")

		By("handing a freed node to the pod that waits")
		Expect(k8s.Delete(suiteContext, pods[0])).To(Succeed())
		Eventually(read(third)).Should(HaveField("Status.Phase", corev1.PodRunning))
		Eventually(readPool(pool)).Should(And(haveDevices(16, 16, 0, 0), haveClaims(2, 0)))
	})

	It("follow namespaces that come, are labelled and unlabelled", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		profile := newProfile(newPool(nodes), 1)
		Eventually(readProfile(profile)).Should(haveCondition("TemplatesPublished=True/NoNamespaces"))
		Expect(readProfile(profile)()).To(beReady())

		first := newNamespace(map[string]string{"profile": profile})
		Eventually(read(templateIn(first, profile))).ShouldNot(BeNil())
		second := newNamespace(nil)
		label(second, "profile", profile)
		Eventually(read(templateIn(second, profile))).ShouldNot(BeNil())
		Eventually(readProfile(profile)).Should(haveNamespaces(2, 2))

		label(first, "profile", "")
		Eventually(get(templateIn(first, profile))).Should(beNotFound())
		Eventually(readProfile(profile)).Should(haveNamespaces(1, 1))
	})

	It("replace a template whose meaning changes, and leave claims alone", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		profile := newProfile(pool, 1)
		namespace := newNamespace(map[string]string{"profile": profile})
		template := templateIn(namespace, profile)
		Eventually(read(template)).ShouldNot(BeNil())
		before := template.UID
		pod := newPod(namespace, profile)
		Eventually(read(pod)).Should(HaveField("Status.Phase", corev1.PodRunning))

		apply(profileYAML, profile, pool, 2)
		Eventually(read(template)).Should(And(
			HaveField("UID", Not(Equal(before))),
			HaveField("Spec.Spec.Devices.Requests", ConsistOf(HaveField("Exactly.Count", BeEquivalentTo(2)))),
		))
		Eventually(readProfile(profile)).Should(beReady())
		Eventually(readPool(pool)).Should(haveDevices(8, 1, 7, 0))
		Expect(read(pod)()).To(HaveField("Status.Phase", corev1.PodRunning))
	})

	It("count what the scheduler would not hand out", func() {
		nodes, driver := newNodes(2, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		Eventually(readPool(pool)).Should(haveDevices(16, 0, 16, 0))

		By("tainting a device")
		taint := resourcev1.DeviceTaint{Key: "gpu.nvidia.com/xid", Value: "79", Effect: resourcev1.DeviceTaintEffectNoSchedule}
		Expect(driver.SetTaint(suiteContext, nodes+"-0", "gpu-0", taint)).To(Succeed())
		Eventually(readPool(pool)).Should(haveDevices(16, 0, 15, 1))

		By("publishing a node by half")
		Expect(driver.Announce(suiteContext, nodes+"-1", 2)).To(Succeed())
		Eventually(readPool(pool)).Should(And(
			haveDevices(8, 0, 7, 1), haveCondition("InventoryComplete=False/Incomplete"), beReady()))

		By("cordoning the other one")
		node := &corev1.Node{ObjectMeta: named(nodes + "-0")}
		Expect(read(node)()).NotTo(BeNil())
		patch := client.MergeFrom(node.DeepCopy())
		node.Spec.Unschedulable = true
		Expect(k8s.Patch(suiteContext, node, patch)).To(Succeed())
		Eventually(readPool(pool)).Should(haveDevices(8, 0, 0, 8))

		By("losing both")
		for i := range 2 {
			Expect(driver.Withdraw(suiteContext, fmt.Sprintf("%s-%d", nodes, i))).To(Succeed())
		}
		Eventually(readPool(pool)).Should(And(haveDevices(0, 0, 0, 0), haveCondition("DriverReady=False/NotPublishing"),
			haveCondition("Reconciling=True/NotPublishing")))
	})

	It("stay as they are while suspended", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		Eventually(readPool(pool)).Should(beReady())
		class := classNamed(pool + ".gpupool.dev")
		Expect(read(class)()).NotTo(BeNil())
		before := class.ResourceVersion

		apply(poolYAML+"  suspend: true\n", pool, "elsewhere")
		Eventually(readPool(pool)).Should(haveCondition("ClassPublished=True/Published"))
		Eventually(readPool(pool)).Should(haveCondition("DriverReady=False/TooFewNodes"), "status goes on")
		apply(`
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: %[1]s}
spec: {driver: {name: gpu.nvidia.com}, suspend: true}
`, pool)
		Eventually(readPool(pool)).Should(And(haveCondition("ClassPublished=False/Suspended"), haveCondition("Reconciling=True/Suspended")))
		Expect(read(class)()).To(HaveField("ResourceVersion", before))

		apply(poolYAML, pool, nodes)
		Eventually(readPool(pool)).Should(beReady())
	})
})
