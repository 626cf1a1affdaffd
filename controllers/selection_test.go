package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/test/cluster"
)

// applyPool applies a pool with a spec of its own and deletes it after the spec.
func applyPool(spec string, args ...any) string {
	GinkgoHelper()
	name := unique("pool")
	apply("apiVersion: gpupool.dev/v1alpha1\nkind: GpuPool\nmetadata: {name: "+name+"}\nspec: "+spec, args...)
	DeferCleanup(func() { remove(&v1alpha1.GpuPool{ObjectMeta: named(name)}) })
	return name
}

// applyProfile applies a profile for the namespaces that are labelled with its name, and deletes it after the spec.
func applyProfile(spec string, args ...any) string {
	GinkgoHelper()
	name := unique("profile")
	apply("apiVersion: gpupool.dev/v1alpha1\nkind: WorkloadProfile\nmetadata: {name: "+name+"}\nspec:\n"+
		"  namespaces: {selector: {matchLabels: {profile: "+name+"}}}\n"+spec, args...)
	DeferCleanup(func() { remove(&v1alpha1.WorkloadProfile{ObjectMeta: named(name)}) })
	return name
}

var _ = Describe("A selection", func() {
	It("that asks for a nominal size is answered with the nearest value", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		pool := applyPool(`
  driver: {name: gpu.nvidia.com}
  nodes: {selectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [%s]}]}]}
  devices: {memory: {min: 80Gi}}
`, nodes)
		Eventually(readPool(pool)).Should(And(
			haveDevices(0, 0, 0, 0), beReady(),
			haveCondition("DevicesFound=False/NoMatchingDevice"), haveMessage("DevicesFound", ContainSubstring("status.excluded")),
			HaveField("Status.Excluded", ConsistOf(v1alpha1.ExcludedDevices{
				Field: "devices.memory", Devices: 8, Detail: "81559Mi is below 80Gi",
			})),
		))
	})

	It("counts models, what is out of scope, and finds devices", func() {
		nodes, _ := newNodes(1, "mixed.example.com", "example-gpu-4")
		newNodes(1, "mixed.example.com", "example-gpu-4") // the class reaches there too
		pool := applyPool(`
  driver: {name: mixed.example.com}
  nodes: {selectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [%s]}]}]}
`, nodes)
		Eventually(readPool(pool)).Should(And(
			haveDevices(4, 0, 4, 0), haveCondition("DevicesFound=True/Found"),
			HaveField("Status.OutOfScope", HaveValue(BeEquivalentTo(4))),
			HaveField("Status.Models", BeEmpty()), // nobody knows this driver's product names
		))
		known, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		Eventually(readPool(newPool(known))).Should(HaveField("Status.Models", ConsistOf(
			v1alpha1.ModelCounts{Name: "NVIDIA H100 80GB HBM3", Total: ptr.To(int32(8)), Allocated: ptr.To(int32(0)), Available: ptr.To(int32(8))})))
	})

	It("passes over a device that lacks what it reads, and stops nobody for it", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-odd")
		pool := applyPool(`
  driver: {name: gpu.nvidia.com}
  nodes: {selectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [%s]}]}]}
  devices: {models: ["NVIDIA A100*"]}
`, nodes)
		Eventually(readPool(pool)).Should(And(
			haveDevices(1, 0, 1, 0),
			HaveField("Status.Excluded", ContainElement(And(
				HaveField("Field", "devices.type"), HaveField("Devices", BeEquivalentTo(1)),
			))),
		))
		profile := applyProfile(`
  requests: [{name: gpu, exactly: {poolName: %s}}]
`, pool)
		namespace := newNamespace(map[string]string{"profile": profile})
		Eventually(read(templateIn(namespace, profile))).ShouldNot(BeNil())
		pod := newPod(namespace, profile)
		Eventually(read(pod)).Should(HaveField("Status.Phase", corev1.PodRunning))
		Eventually(readPool(pool)).Should(haveDevices(1, 1, 0, 0))
	})

	It("of shared devices gives parts of them, and warns of a request that takes all", func() {
		nodes, _ := newNodes(1, "hami-core-gpu.project-hami.io", "hami-nvidia")
		pool := applyPool(`
  driver: {name: hami-core-gpu.project-hami.io}
  nodes: {selectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [%s]}]}]}
  devices: {sharing: Shared}
`, nodes)
		Eventually(readPool(pool)).Should(haveDevices(2, 0, 2, 0))
		greedy := applyProfile(`
  requests: [{name: gpu, exactly: {poolName: %s, capacityRequests: [{name: memory, amount: 20389Mi}]}}]
`, pool)
		Eventually(readProfile(greedy)).Should(HaveField("Status.Hazards", ConsistOf(v1alpha1.ReasonCount{Reason: "TakesWholeDevice", Count: 1})))
		quarter := applyProfile(`
  requests: [{name: gpu, exactly: {poolName: %s, capacityRequests: [{name: memory, amount: 20389Mi}, {name: cores, amount: 25}]}}]
`, pool)
		Eventually(readProfile(quarter)).Should(And(beReady(), HaveField("Status.Hazards", BeEmpty())))

		namespace := newNamespace(map[string]string{"profile": quarter})
		Eventually(read(templateIn(namespace, quarter))).ShouldNot(BeNil())
		for range 8 {
			pod := newPod(namespace, quarter)
			Eventually(read(pod)).Should(HaveField("Status.Phase", corev1.PodRunning))
		}
		ninth := newPod(namespace, quarter)
		Eventually(readPool(pool)).Should(And(haveDevices(2, 2, 0, 0), haveClaims(8, 1)))
		Expect(read(ninth)()).To(HaveField("Status.Phase", corev1.PodPending))
	})
})

var _ = Describe("A profile", func() {
	It("takes the first alternative that can be had, and says so in the claims", func() {
		first, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		second, _ := newNodes(1, "gpu.amd.com", "amd")
		h100 := newPool(first)
		amd := applyPool(`
  driver: {name: gpu.amd.com}
  nodes: {selectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [%s]}]}]}
  devices: {models: [AMD_Instinct_MI300X_OAM]}
`, second)
		profile := applyProfile(`
  requests:
  - name: gpu
    firstAvailable:
    - {name: nvidia, poolName: %s, count: 9}
    - {name: amd, poolName: %s, count: 1}
`, h100, amd)
		namespace := newNamespace(map[string]string{"profile": profile})
		Eventually(readProfile(profile)).Should(And(beReady(), haveNamespaces(1, 1)))
		pod := newPod(namespace, profile)
		Eventually(read(pod)).Should(And(HaveField("Status.Phase", corev1.PodRunning), HaveField("Spec.NodeName", second+"-0")))
		Eventually(readPool(amd)).Should(And(haveDevices(1, 1, 0, 0), haveClaims(1, 0)))
		claims := &resourcev1.ResourceClaimList{}
		Expect(k8s.List(suiteContext, claims, client.InNamespace(namespace))).To(Succeed())
		Expect(claims.Items).To(ConsistOf(And(
			HaveField("Labels", HaveKeyWithValue(v1alpha1.ProfileLabel, profile)),
			HaveField("Status.Allocation.Devices.Results", ConsistOf(HaveField("Request", "gpu/amd"))))))
	})

	It("aligns a GPU with a NIC on one PCIe root, and hands configuration to the NIC's driver", func() {
		node := unique("rdma")
		Expect(running.AddNodes(suiteContext, cluster.Node{Name: node, Labels: map[string]string{"pool": node}})).To(Succeed())
		DeferCleanup(func() { Expect(running.DeleteNode(suiteContext, node)).To(Succeed()) })
		serve(node, "gpu.nvidia.com", "nvidia")
		serve(node, "sriovnetwork.k8snetworkplumbingwg.io", "sriov")
		pool := newPool(node)
		class := &resourcev1.DeviceClass{ObjectMeta: named(unique("nic")), Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: `device.driver == "sriovnetwork.k8snetworkplumbingwg.io"`,
			}}},
		}}
		Expect(k8s.Create(suiteContext, class)).To(Succeed())
		DeferCleanup(func() { remove(class) })
		profile := applyProfile(`
  requests:
  - {name: gpu, exactly: {poolName: %s}}
  - name: nic
    exactly:
      deviceClassName: %s
      devices: {selectors: [{cel: {expression: 'device.attributes["resource.kubernetes.io"].?pcieRoot.orValue("") != ""'}}]}
  constraints: [{requests: [gpu, nic], matchAttribute: resource.kubernetes.io/pcieRoot}]
  config:
  - requests: [nic]
    opaque:
      driver: sriovnetwork.k8snetworkplumbingwg.io
      parameters: {apiVersion: sriovnetwork.k8snetworkplumbingwg.io/v1alpha1, kind: VfConfig, ifName: net1}
`, pool, class.Name)
		namespace := newNamespace(map[string]string{"profile": profile})
		Eventually(readProfile(profile)).Should(And(beReady(), haveNamespaces(1, 1)))
		pod := newPod(namespace, profile)
		Eventually(read(pod)).Should(HaveField("Status.Phase", corev1.PodRunning))
		claims := &resourcev1.ResourceClaimList{}
		Expect(k8s.List(suiteContext, claims, client.InNamespace(namespace))).To(Succeed())
		Expect(claims.Items).To(HaveLen(1))
		allocation := claims.Items[0].Status.Allocation
		Expect(allocation.Devices.Results).To(HaveLen(2))
		Expect(allocation.Devices.Config).To(ConsistOf(And(
			HaveField("Requests", ConsistOf("nic")), HaveField("Opaque.Driver", "sriovnetwork.k8snetworkplumbingwg.io"))))
	})

	It("for administration goes only where Kubernetes allows it, and takes nothing", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		profile := applyProfile(`
  requests:
  - name: gpu
    exactly:
      poolName: %s
      allocationMode: All
      adminAccess: true
      tolerations: [{operator: Exists, effect: NoSchedule}, {operator: Exists, effect: NoExecute}]
`, pool)
		monitoring := newNamespace(map[string]string{"profile": profile, resourcev1.DRAAdminNamespaceLabelKey: "true"})
		elsewhere := newNamespace(map[string]string{"profile": profile})
		Eventually(readProfile(profile)).Should(And(
			haveNamespaces(2, 1), haveCondition("TemplatesPublished=False/AdminAccessNotAllowed"), haveCondition("Stalled=True/AdminAccessNotAllowed"),
			HaveField("Status.Namespaces.Failures", ConsistOf(v1alpha1.ReasonCount{Reason: "AdminAccessNotAllowed", Count: 1}))))
		pod := newPod(monitoring, profile)
		Eventually(read(pod)).Should(HaveField("Status.Phase", corev1.PodRunning))
		Eventually(readPool(pool)).Should(haveDevices(8, 0, 8, 0))

		label(elsewhere, resourcev1.DRAAdminNamespaceLabelKey, "true")
		Eventually(readProfile(profile)).Should(And(beReady(), haveNamespaces(2, 2)))
	})

	It("leaves an older template until somebody deletes it, if asked to", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		const spec = `
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: %[1]s}
spec:
  namespaces: {selector: {matchLabels: {profile: %[1]s}}}
  template: {updatePolicy: OnDelete}
  requests: [{name: gpu, exactly: {poolName: %[2]s, count: %[3]d}}]
`
		profile := unique("profile")
		apply(spec, profile, pool, 1)
		DeferCleanup(func() { remove(&v1alpha1.WorkloadProfile{ObjectMeta: named(profile)}) })
		namespace := newNamespace(map[string]string{"profile": profile})
		template := templateIn(namespace, profile)
		Eventually(read(template)).ShouldNot(BeNil())
		uid := template.UID
		apply(spec, profile, pool, 2)
		Eventually(readProfile(profile)).Should(And(
			haveCondition("TemplatesPublished=True/OutOfDate"), beReady(), haveNamespaces(1, 0)))
		Expect(read(template)()).To(HaveField("UID", uid))
		later := newNamespace(map[string]string{"profile": profile})
		Eventually(read(templateIn(later, profile))).Should(HaveField("Spec.Spec.Devices.Requests", ConsistOf(HaveField("Exactly.Count", BeEquivalentTo(2)))))

		Expect(k8s.Delete(suiteContext, template)).To(Succeed())
		Eventually(read(template)).Should(HaveField("UID", Not(Equal(uid))))
		Eventually(readProfile(profile)).Should(And(haveCondition("TemplatesPublished=True/Published"), haveNamespaces(2, 2)))
	})
})

var _ = Describe("An extended resource name", func() {
	// legacyPod asks for devices as pods did before DRA.
	legacyPod := func(namespace string, limit corev1.ResourceName) *corev1.Pod {
		GinkgoHelper()
		pod := &corev1.Pod{ObjectMeta: named(unique("pod")), Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "example.com/main",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{limit: resource.MustParse("1")}},
		}}}}
		pod.Namespace = namespace
		Expect(k8s.Create(suiteContext, pod)).To(Succeed())
		DeferCleanup(func() { remove(pod, client.GracePeriodSeconds(0)) })
		return pod
	}

	It("serves plain limits, by its own name and by that of the class", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		name := unique("h100")
		pool := applyPool(`
  driver: {name: gpu.nvidia.com}
  nodes: {selectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [%s]}]}]}
  deviceClass: {extendedResourceName: example.com/%s}
`, nodes, name)
		Eventually(readPool(pool)).Should(And(beReady(), haveDevices(8, 0, 8, 0)))
		namespace := newNamespace(nil)
		Eventually(read(legacyPod(namespace, corev1.ResourceName("example.com/"+name)))).Should(HaveField("Status.Phase", corev1.PodRunning))
		implicit := corev1.ResourceName("deviceclass.resource.kubernetes.io/" + pool + ".gpupool.dev")
		Eventually(read(legacyPod(namespace, implicit))).Should(HaveField("Status.Phase", corev1.PodRunning))
		Eventually(readPool(pool)).Should(And(haveDevices(8, 2, 6, 0), haveClaims(2, 0)))
	})

	It("belongs to one class: the holder keeps it, and it is taken over when it becomes free", func() {
		name := "example.com/" + unique("gpu")
		foreign := &resourcev1.DeviceClass{ObjectMeta: named(unique("foreign")), Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &name}}
		Expect(k8s.Create(suiteContext, foreign)).To(Succeed())
		const spec = `
  driver: {name: gpu.nvidia.com}
  nodes: {minReadyNodes: 0}
  deviceClass: {extendedResourceName: %s}
`
		first := applyPool(spec, name)
		Eventually(readPool(first)).Should(And(
			haveCondition("ClassPublished=False/ExtendedResourceNameTaken"), haveCondition("Stalled=True/ExtendedResourceNameTaken"),
			haveMessage("ClassPublished", ContainSubstring(foreign.Name))))
		class := classNamed(first + ".gpupool.dev")
		Expect(read(class)()).To(HaveField("Spec.ExtendedResourceName", BeNil()), "published, and without the name")
		second := applyPool(spec, name)
		Eventually(readPool(second)).Should(haveCondition("ClassPublished=False/ExtendedResourceNameTaken"))

		By("freeing it: the pool first by name gets it")
		Expect(k8s.Delete(suiteContext, foreign)).To(Succeed())
		Eventually(readPool(first)).Should(beReady())
		Eventually(read(class)).Should(HaveField("Spec.ExtendedResourceName", HaveValue(Equal(name))))
		Consistently(readPool(second)).Should(haveCondition("ClassPublished=False/ExtendedResourceNameTaken"))

		By("giving it up: the other one gets it")
		remove(&v1alpha1.GpuPool{ObjectMeta: named(first)})
		Eventually(readPool(second)).Should(beReady())

		By("a newer class taking it, which Kubernetes prefers")
		thief := &resourcev1.DeviceClass{ObjectMeta: named(unique("thief")), Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &name}}
		waitASecond() // creation times have no smaller unit
		Expect(k8s.Create(suiteContext, thief)).To(Succeed())
		Eventually(readPool(second)).Should(haveCondition("ClassPublished=False/ExtendedResourceNameTaken"))
		remove(thief)
		Eventually(readPool(second)).Should(beReady())
	})
})
