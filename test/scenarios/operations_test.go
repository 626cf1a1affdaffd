package scenarios_test

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

// noClaim is the reason of the event that a pod gets for which no claim can be made.
const noClaim = "FailedResourceClaimCreation"

// eventsOf are the messages of a pod's events of one reason, for Eventually.
func eventsOf(pod *corev1.Pod, reason string) func() ([]string, error) {
	return func() ([]string, error) {
		list := &corev1.EventList{}
		err := k8s.List(suiteContext, list, client.InNamespace(pod.Namespace))
		var messages []string
		for _, event := range list.Items {
			if event.InvolvedObject.UID == pod.UID && event.Reason == reason {
				messages = append(messages, event.Message)
			}
		}
		return messages, err
	}
}

// templateIn is the key of a template.
func templateIn(namespace, name string) *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

var _ = scenario("existing-driver.yaml", "counts what a driver publishes, and leaves no trace", func(s *scene) {
	s.add(machine{name: "found-0", publishes: map[string]string{nvidia: "nvidia-l40s-a2"}})
	s.namespace("by-hand", nil)
	vendor := deviceClass("gpu.nvidia.com", nvidia)
	s.install(vendor)
	s.applyYAML(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {namespace: by-hand, name: any-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
`)
	before, err := slicesOf("found-0")
	Expect(err).NotTo(HaveOccurred())
	s.apply("existing-driver.yaml")
	Eventually(pool("found-l40s")).Should(haveDevices(devices{total: 2, available: 2}))

	pods := s.run(4, "by-hand", template("any-gpu"))
	Eventually(pool("found-l40s")).Should(And(haveDevices(devices{total: 2, allocated: 2}), haveClaims(0, 0)))

	s.delete(&v1alpha1.GpuPool{ObjectMeta: metav1.ObjectMeta{Name: "found-l40s"}})
	Eventually(existence(deviceClass("found-l40s.gpupool.dev", nvidia))).Should(beNotFound())
	Expect(states(pods)()).To(Equal(state{running: 4}))
	Expect(slicesOf("found-0")).To(Equal(before))
	found := deviceClass("gpu.nvidia.com", nvidia)
	Expect(existence(found)()).To(Succeed())
	Expect(found.ResourceVersion).To(Equal(vendor.ResourceVersion))
})

var _ = scenario("legacy-limits.yaml", "serves unchanged pods from plugin and driver, node by node", func(s *scene) {
	const legacy = corev1.ResourceName("nvidia.com/gpu")
	s.add(machine{name: "plugin-0", allocatable: corev1.ResourceList{legacy: resource.MustParse("8")}})
	s.namespace("legacy", nil)
	s.apply("legacy-limits.yaml")
	Eventually(pool("legacy-nvidia")).Should(And(
		haveDevices(devices{}), haveCondition("DriverReady=True/NoNodes"), haveCondition("ClassPublished=True/Published")))

	Expect(nodesOf(s.run(2, "legacy", limit(legacy, "4")))).To(Equal([]string{"plugin-0", "plugin-0"}))
	waiting := s.create(1, "legacy", limit(legacy, "4"))
	s.add(machine{
		name: "moved-0", labels: map[string]string{"gpu-stack": "dra"}, publishes: map[string]string{nvidia: "nvidia-a100-8"},
	})
	Eventually(states(waiting)).Should(Equal(state{running: 1}))
	Expect(nodesOf(append(waiting, s.run(1, "legacy", limit(legacy, "4"))...))).To(Equal([]string{"moved-0", "moved-0"}))
	Expect(devicesOf(waiting[0])).To(HaveLen(4))
	s.end(s.refuse("legacy", limit(legacy, "4"))...)
	Eventually(pool("legacy-nvidia")).Should(And(haveDevices(devices{total: 8, allocated: 8}), haveClaims(2, 0)))

	By("moving a node that is not idle")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "plugin-0"}}
	s.driver(nvidia).publishes("plugin-0", "nvidia-a100-8")
	patch(node, `{"metadata": {"labels": {"gpu-stack": "dra"}}}`)
	Eventually(pool("legacy-nvidia")).Should(haveDevices(devices{total: 16, allocated: 8, available: 8}))
	node.Status.Allocatable[legacy] = resource.MustParse("0")
	Expect(k8s.Status().Update(suiteContext, node)).To(Succeed())
	Expect(nodesOf(s.run(1, "legacy", limit(legacy, "8")))).To(Equal([]string{"plugin-0"}), "where two pods have all GPUs")

	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: a-second-one}
spec: {driver: {name: gpu.nvidia.com}, deviceClass: {extendedResourceName: nvidia.com/gpu}}
`)
	Eventually(pool("a-second-one")).Should(haveCondition("ClassPublished=False/ExtendedResourceNameTaken"))
})

var _ = scenario("kueue-and-kai.yaml", "gives devices for a plain resource name", func(s *scene) {
	const name = corev1.ResourceName("gpu.example.com/h100")
	s.add(machine{name: "queued-0", publishes: map[string]string{nvidia: "nvidia-h100-8"}})
	s.namespace("queued", nil)
	s.apply("kueue-and-kai.yaml")
	Eventually(pool("queued-h100")).Should(haveDevices(devices{total: 8, available: 8}))

	pods := s.run(2, "queued", limit(name, "4"))
	Expect(devicesOf(pods...)).To(HaveLen(8))
	s.refuse("queued", limit(name, "1"))
	Eventually(pool("queued-h100")).Should(And(haveDevices(devices{total: 8, allocated: 8}), haveClaims(2, 0)))
})

var _ = scenario("self-service.yaml", "counts the claims of a template that a team has written", func(s *scene) {
	s.add(machine{name: "open-0", publishes: map[string]string{nvidia: "nvidia-a100-8"}})
	s.namespace("team-y-dev", nil)
	s.apply("self-service.yaml")
	Eventually(pool("open-a100")).Should(And(
		haveDevices(devices{total: 8, available: 8}), HaveField("Status.DeviceClassName", "open-a100.gpupool.dev")))

	pods := s.run(4, "team-y-dev", template("two-of-a-socket"))
	for _, pod := range pods {
		Expect(attributesOf(pod, numaNode)).To(HaveKeyWithValue("gpu", Or(
			Equal([]string{"0", "0"}), Equal([]string{"1", "1"}))))
	}
	s.refuse("team-y-dev", template("two-of-a-socket"))
	Eventually(pool("open-a100")).Should(And(haveDevices(devices{total: 8, allocated: 8}), haveClaims(4, 1)))
})

var _ = scenario("quota.yaml", "bounds a namespace, however it asks", func(s *scene) {
	const implicit = corev1.ResourceName("deviceclass.resource.kubernetes.io/quota-a100.gpupool.dev")
	s.add(machine{name: "quota-0", publishes: map[string]string{nvidia: "nvidia-a100-8"}})
	s.namespace("interactive", nil)
	s.namespace("no-quota", nil)
	s.apply("quota.yaml")
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "interactive", Name: "gpus"}}
	Eventually(read(quota)).Should(HaveField("Status.Used", Not(BeEmpty())))
	Eventually(profile("interactive-1")).Should(bePublished(1))

	s.run(1, "interactive", template("interactive-1"))
	s.run(1, "interactive", limit(implicit, "1"))
	Expect(k8s.Create(suiteContext, newPod("interactive", limit(implicit, "1")))).To(
		MatchError(ContainSubstring("exceeded quota")))
	third := s.create(1, "interactive", template("interactive-1"))
	Eventually(eventsOf(third[0], noClaim)).Should(ContainElement(ContainSubstring("exceeded quota")))
	s.run(1, "no-quota", limit(implicit, "4"))
	// A claim that does not exist is not pending.
	Eventually(pool("quota-a100")).Should(And(
		haveDevices(devices{total: 8, allocated: 6, available: 2}), haveClaims(3, 0)))

	patch(quota, `{"spec": {"hard": {"requests.deviceclass.resource.kubernetes.io/quota-a100.gpupool.dev": "3"}}}`)
	Eventually(states(third)).Should(Equal(state{running: 1}))
})

var _ = scenario("monitoring-admin-access.yaml", "sees every GPU of a node, takes none, and stays", func(s *scene) {
	s.add(machine{name: "monitored-0", publishes: map[string]string{nvidia: "nvidia-h100-8"}})
	s.namespace("gpu-monitoring", nil)
	s.namespace("jobs", nil)
	s.apply("monitoring-admin-access.yaml")
	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: job-8}
spec:
  namespaces: {names: [jobs]}
  requests: [{name: gpu, exactly: {poolName: monitored, count: 8}}]
`)
	Eventually(profile("monitor-all")).Should(haveCondition("TemplatesPublished=False/AdminAccessNotAllowed"))
	patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gpu-monitoring"}},
		`{"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}`)
	Eventually(profile("monitor-all")).Should(bePublished(1))
	Eventually(profile("job-8")).Should(bePublished(1))

	agents := s.run(1, "gpu-monitoring", template("monitor-all"))
	jobs := s.run(1, "jobs", template("job-8"))
	agents = append(agents, s.run(1, "gpu-monitoring", template("monitor-all"))...)
	Expect(devicesOf(agents[0])).To(HaveLen(8))
	Expect(devicesOf(agents[1])).To(Equal(devicesOf(jobs[0])))
	Eventually(pool("monitored")).Should(haveDevices(devices{total: 8, allocated: 8}))

	s.applyYAML(`
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: drain-monitored-0}
spec:
  deviceSelector: {driver: gpu.nvidia.com, pool: monitored-0}
  taint: {key: example.com/drained, effect: NoExecute}
`)
	Eventually(existence(jobs[0])).Should(beNotFound())
	Eventually(pool("monitored")).Should(haveDevices(devices{total: 8, unavailable: 8}))
	Expect(states(agents)()).To(Equal(state{running: 2}))

	By("cutting cards")
	s.add(machine{name: "cut-on-demand", publishes: map[string]string{nvidia: "nvidia-h100-mig-dynamic"}})
	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: slices}
spec: {driver: {name: gpu.nvidia.com}, devices: {type: Partition, partitionProfiles: [1g.10gb]}}
---
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: slice}
spec:
  namespaces: {names: [jobs]}
  requests: [{name: gpu, exactly: {poolName: slices}}]
`)
	Eventually(profile("slice")).Should(bePublished(1))
	there := onNodes(corev1.LabelHostname, "cut-on-demand")
	s.end(s.run(1, "gpu-monitoring", template("monitor-all"), there)...)
	s.run(1, "jobs", template("slice"))
	s.refuse("gpu-monitoring", template("monitor-all"), there) // kubernetes/kubernetes#140729
})

var _ = scenario("bad-gpu.yaml", "says whom the rule would evict, and evicts", func(s *scene) {
	s.add(machine{name: "gpu-node-17", publishes: map[string]string{nvidia: "nvidia-h100-8"}})
	s.namespace("served", nil)
	content, err := os.ReadFile(filepath.Join(folder, "bad-gpu.yaml"))
	Expect(err).NotTo(HaveOccurred())
	s.applyYAML(strings.ReplaceAll(string(content), "effect: NoExecute", "effect: None"))
	Eventually(pool("served-h100")).Should(haveDevices(devices{total: 8, available: 8}))
	Eventually(profile("served-1")).Should(bePublished(1))
	pods := s.run(8, "served", template("served-1"))
	s.applyYAML(`
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: before-gpu-3}
spec:
  deviceSelector: {driver: gpu.nvidia.com, pool: gpu-node-17, device: gpu-3}
  taint: {key: example.com/broken, effect: None}
`)
	rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "before-gpu-3"}}
	Eventually(read(rule)).Should(HaveField("Status.Conditions",
		ContainElement(HaveField("Message", ContainSubstring("1 pod would be evicted")))))

	s.apply("bad-gpu.yaml")
	Eventually(states(pods)).Should(Equal(state{running: 7}))
	Eventually(pool("served-h100")).Should(haveDevices(devices{total: 8, allocated: 7, unavailable: 1}))
	waiting := s.refuse("served", template("served-1"))
	s.delete(&resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "gpu-node-17-gpu-3"}})
	Eventually(states(waiting)).Should(Equal(state{running: 1}))
	Expect(devicesOf(waiting[0])).To(Equal([]string{"gpu=gpu-3"}))
})

var _ = scenario("scale-from-zero.yaml", "is Ready without a node, and serves the first", func(s *scene) {
	s.namespace("burst", map[string]string{"gpu": "burst"})
	s.apply("scale-from-zero.yaml")
	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: not-from-zero}
spec:
  driver: {name: gpu.nvidia.com}
  nodes:
    selectorTerms: [{matchExpressions: [{key: cloud.google.com/gke-nodepool, operator: In, values: [burst-a100]}]}]
`)
	Eventually(pool("burst-a100")).Should(And(haveDevices(devices{}), haveCondition("DriverReady=True/NoNodes")))
	Eventually(pool("not-from-zero")).Should(haveCondition("DriverReady=False/TooFewNodes"))
	Eventually(profile("burst-1")).Should(bePublished(1))

	pods := s.create(2, "burst", template("burst-1"))
	Eventually(pool("burst-a100")).Should(haveClaims(0, 2))
	s.add(machine{
		name: "burst-0", labels: map[string]string{"cloud.google.com/gke-nodepool": "burst-a100"},
		publishes: map[string]string{nvidia: "nvidia-a100-8"},
	})
	Eventually(states(pods)).Should(Equal(state{running: 2}))
	Eventually(pool("burst-a100")).Should(And(
		haveDevices(devices{total: 8, allocated: 2, available: 6}), haveCondition("DriverReady=True/Publishing")))
	Eventually(pool("not-from-zero")).Should(beReady())
})

var _ = scenario("adopt-existing.yaml", "takes over what its owner labels", func(s *scene) {
	s.add(machine{name: "brown-0", publishes: map[string]string{nvidia: "nvidia-h100-8"}})
	s.namespace("brownfield", nil)
	class := deviceClass("gpu-h100", nvidia)
	s.install(class)
	s.applyYAML(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {namespace: brownfield, name: one-h100}
spec: {spec: {devices: {requests: [{name: old, exactly: {deviceClassName: gpu-h100}}]}}}
`)
	before := s.run(1, "brownfield", template("one-h100"))
	s.apply("adopt-existing.yaml")
	Eventually(pool("brownfield-h100")).Should(haveCondition("ClassPublished=False/NameTaken"))
	Eventually(profile("brownfield-one")).Should(haveCondition("Accepted=False/PoolNotPublished"))

	patch(class, `{"metadata": {"labels": {
		"app.kubernetes.io/managed-by": "gpupool-operator", "gpupool.dev/pool": "brownfield-h100"}}}`)
	Eventually(pool("brownfield-h100")).Should(And(
		haveDevices(devices{total: 8, allocated: 1, available: 7}), haveClaims(1, 0)))
	Eventually(profile("brownfield-one")).Should(haveCondition("TemplatesPublished=False/NameTaken"))
	patch(templateIn("brownfield", "one-h100"), `{"metadata": {"labels": {
		"app.kubernetes.io/managed-by": "gpupool-operator", "gpupool.dev/profile": "brownfield-one"}}}`)
	Eventually(profile("brownfield-one")).Should(bePublished(1))

	after := s.run(1, "brownfield", template("one-h100"))
	Expect(devicesOf(before...)).To(Equal([]string{"old=gpu-0"}))
	Expect(devicesOf(after...)).To(Equal([]string{"gpu=gpu-1"}))
	Eventually(profile("brownfield-one")).Should(haveClaims(1, 0))
	Eventually(pool("brownfield-h100")).Should(haveClaims(2, 0))
})

var _ = scenario("retire-profile.yaml", "takes templates away with label and profile, and no pod", func(s *scene) {
	s.add(machine{name: "outgoing-0", publishes: map[string]string{nvidia: "nvidia-a100-8"}})
	s.namespace("tenant", map[string]string{"gpu": "outgoing"})
	s.apply("retire-profile.yaml")
	Eventually(profile("outgoing")).Should(bePublished(1))
	pods := s.run(1, "tenant", template("outgoing"))

	By("removing the label")
	tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}}
	patch(tenant, `{"metadata": {"labels": {"gpu": null}}}`)
	Eventually(existence(templateIn("tenant", "outgoing"))).Should(beNotFound())
	late := s.create(1, "tenant", template("outgoing"))
	Eventually(eventsOf(late[0], noClaim)).Should(ContainElement(ContainSubstring("not found")))
	Expect(states(append(pods, late...))()).To(Equal(state{running: 1}))
	patch(tenant, `{"metadata": {"labels": {"gpu": "outgoing"}}}`)
	Eventually(states(append(pods, late...))).Should(Equal(state{running: 2}))

	By("removing the label while suspended")
	outgoing := &v1alpha1.WorkloadProfile{ObjectMeta: metav1.ObjectMeta{Name: "outgoing"}}
	patch(outgoing, `{"spec": {"suspend": true}}`)
	Eventually(profile("outgoing")).Should(beReady())
	patch(tenant, `{"metadata": {"labels": {"gpu": null}}}`)
	Eventually(profile("outgoing")).Should(HaveField("Status.Namespaces.Selected", HaveValue(BeZero())))
	pods = append(pods, s.run(1, "tenant", template("outgoing"))...)

	By("deleting the profile")
	s.delete(outgoing)
	Eventually(existence(templateIn("tenant", "outgoing"))).Should(beNotFound())
	Expect(states(append(pods, late...))()).To(Equal(state{running: 3}))
})
