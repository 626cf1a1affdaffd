package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

var _ = Describe("What cannot be served", func() {
	// whole applies a pool with a devices block of its own.
	applyDevices := func(pool, driver, devices string) {
		GinkgoHelper()
		apply(`
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: %s}
spec:
  driver: {name: %s}
  nodes: {minReadyNodes: 0}
  devices: %s
`, pool, driver, devices)
	}

	DescribeTable("a pool's spec stalls with a reason and a way out, and is served once mended",
		func(driver, bad, reason, message, good string) {
			pool := unique("refused")
			DeferCleanup(func() { remove(&v1alpha1.GpuPool{ObjectMeta: named(pool)}) })
			applyDevices(pool, driver, bad)
			Eventually(readPool(pool)).Should(And(
				haveCondition("Accepted=False/"+reason), haveCondition("Ready=False/"+reason), haveCondition("Stalled=True/"+reason),
				haveNoCondition("Reconciling"), haveMessage("Accepted", ContainSubstring(message)),
			))
			Expect(get(classNamed(pool + ".gpupool.dev"))()).To(beNotFound())

			applyDevices(pool, driver, good)
			Eventually(readPool(pool)).Should(And(beReady(), haveNoCondition("Stalled"), haveNoCondition("Reconciling")))
		},
		Entry("CEL that does not compile", "gpu.nvidia.com",
			`{selectors: [{cel: {expression: "device.driver =="}}]}`, "InvalidSelector",
			"spec.devices.selectors[0].cel.expression: at line and column 1:17",
			`{selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com'"}}]}`),
		Entry("CEL that is not a bool", "gpu.nvidia.com",
			`{selectors: [{cel: {expression: "device.driver"}}]}`, "InvalidSelector", "must evaluate to bool", `{type: Any}`),
		Entry("CEL that costs too much", "gpu.nvidia.com",
			`{selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].?productName.orValue('').contains('H100')"}}]}`,
			"InvalidSelector", "no bound on its cost",
			`{selectors: [{cel: {expression: "has(device.attributes['gpu.nvidia.com'].productName) && device.attributes['gpu.nvidia.com'].productName.contains('H100')"}}]}`),
		Entry("a property that the driver's catalogue entry lacks", "npu.example.com",
			`{models: [X1]}`, "UnknownDeviceProperty", "use devices.attributes instead",
			`{attributes: [{name: model, operator: In, values: [X1]}]}`),
	)

	It("a bad edit leaves what is published alone", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		profile := newProfile(pool, 1)
		namespace := newNamespace(map[string]string{"profile": profile})
		Eventually(readProfile(profile)).Should(And(beReady(), haveNamespaces(1, 1)))
		class, template := classNamed(pool+".gpupool.dev"), templateIn(namespace, profile)
		Expect(read(class)()).NotTo(BeNil())
		Expect(read(template)()).NotTo(BeNil())
		classVersion, templateVersion := class.ResourceVersion, template.ResourceVersion

		applyDevices(pool, "gpu.nvidia.com", `{selectors: [{cel: {expression: "1"}}]}`)
		Eventually(readPool(pool)).Should(And(haveCondition("Accepted=False/InvalidSelector"), haveCondition("ClassPublished=True/Published")))
		apply(`
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: %[1]s}
spec:
  namespaces: {selector: {matchLabels: {profile: %[1]s}}}
  requests: [{name: gpu, exactly: {poolName: nobody}}]
`, profile)
		Eventually(readProfile(profile)).Should(And(
			haveCondition("Accepted=False/PoolNotFound"), haveCondition("TemplatesPublished=True/Published"), haveNamespaces(1, 1)))
		Consistently(func(g Gomega) {
			g.Expect(read(class)()).To(HaveField("ResourceVersion", classVersion))
			g.Expect(read(template)()).To(HaveField("ResourceVersion", templateVersion))
		}).Should(Succeed())
	})

	It("a profile waits for its pool, and for the class of its pool", func() {
		pool := unique("later")
		profile := newProfile(pool, 1)
		namespace := newNamespace(map[string]string{"profile": profile})
		Eventually(readProfile(profile)).Should(And(
			haveCondition("Accepted=False/PoolNotFound"), haveCondition("Reconciling=True/PoolNotFound"), haveNoCondition("Stalled"),
			haveMessage("Accepted", ContainSubstring(pool))))

		By("letting the pool come while its class name is taken")
		foreign := &resourcev1.DeviceClass{ObjectMeta: named(pool + ".gpupool.dev")}
		Expect(k8s.Create(suiteContext, foreign)).To(Succeed())
		apply(poolYAML, pool, "none")
		DeferCleanup(func() { remove(&v1alpha1.GpuPool{ObjectMeta: named(pool)}) })
		Eventually(readPool(pool)).Should(And(
			haveCondition("ClassPublished=False/NameTaken"), haveCondition("Stalled=True/NameTaken"),
			haveMessage("ClassPublished", ContainSubstring("belongs to somebody else; delete it"))))
		Eventually(readProfile(profile)).Should(And(
			haveCondition("Accepted=False/PoolNotPublished"), haveCondition("Reconciling=True/PoolNotPublished")))
		version := foreign.ResourceVersion
		Expect(read(foreign)()).To(HaveField("ResourceVersion", version), "nothing was written to somebody else's class")

		By("freeing the name")
		Expect(k8s.Delete(suiteContext, foreign)).To(Succeed())
		Eventually(readPool(pool)).Should(haveCondition("ClassPublished=True/Published"))
		Eventually(readProfile(profile)).Should(beReady())
		Eventually(read(templateIn(namespace, profile))).ShouldNot(BeNil())
	})

	It("a template of somebody else is not touched, and not co-owned even if it is equal", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		Eventually(readPool(pool)).Should(beReady())
		name := unique("taken")
		ours, theirs := newNamespace(map[string]string{"profile": name}), newNamespace(nil)
		tenant := templateIn(theirs, name)
		tenant.Spec = resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: pool + ".gpupool.dev", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
			}}},
		}}}
		tenant.Spec.Labels = map[string]string{v1alpha1.ProfileLabel: name}
		Expect(k8s.Create(suiteContext, tenant)).To(Succeed())
		version := tenant.ResourceVersion
		label(theirs, "profile", name)
		apply(profileYAML, name, pool, 1)
		DeferCleanup(func() { remove(&v1alpha1.WorkloadProfile{ObjectMeta: named(name)}) })

		Eventually(readProfile(name)).Should(And(
			haveCondition("TemplatesPublished=False/NameTaken"), haveCondition("Stalled=True/NameTaken"), haveNamespaces(2, 1),
			HaveField("Status.Namespaces.Failures", ConsistOf(v1alpha1.ReasonCount{Reason: "NameTaken", Count: 1})),
			haveMessage("TemplatesPublished", Not(ContainSubstring(theirs)))))
		Eventually(read(templateIn(ours, name))).ShouldNot(BeNil())
		Expect(read(tenant)()).To(And(HaveField("ResourceVersion", version), HaveField("Labels", BeEmpty())))

		Expect(k8s.Delete(suiteContext, tenant)).To(Succeed())
		Eventually(readProfile(name)).Should(And(beReady(), haveNamespaces(2, 2)))
	})

	It("a listed namespace that does not exist is waited for", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		profile, later := unique("profile"), unique("later")
		apply(`
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: %s}
spec:
  namespaces: {names: [%s]}
  requests: [{name: gpu, exactly: {poolName: %s}}]
`, profile, later, pool)
		DeferCleanup(func() { remove(&v1alpha1.WorkloadProfile{ObjectMeta: named(profile)}) })
		Eventually(readProfile(profile)).Should(And(
			haveCondition("TemplatesPublished=False/NamespaceNotFound"), haveCondition("Reconciling=True/NamespaceNotFound"), haveNamespaces(1, 0)))
		apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", later)
		Eventually(readProfile(profile)).Should(And(beReady(), haveNamespaces(1, 1)))

		By("letting it go again")
		Expect(k8s.Delete(suiteContext, namespaceNamed(later))).To(Succeed())
		Eventually(readProfile(profile)).Should(And(haveCondition("TemplatesPublished=False/NamespaceNotFound"), haveNamespaces(1, 0)))
	})

	It("a namespace that forbids templates is reported, and the others are served", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		profile := newProfile(pool, 1)
		apply(`
apiVersion: v1
kind: ResourceQuota
metadata: {name: none, namespace: %s}
spec: {hard: {count/resourceclaimtemplates.resource.k8s.io: "0"}}
`, newNamespace(map[string]string{"refuses": profile}))
		refusing := &namespaceList{}
		Expect(k8s.List(suiteContext, refusing, client.MatchingLabels{"refuses": profile})).To(Succeed())
		label(refusing.Items[0].Name, "profile", profile)
		serving := newNamespace(map[string]string{"profile": profile})
		Eventually(readProfile(profile)).Should(And(
			haveCondition("TemplatesPublished=False/Forbidden"), haveCondition("Stalled=True/Forbidden"), haveNamespaces(2, 1)))
		Eventually(read(templateIn(serving, profile))).ShouldNot(BeNil())
	})
})
