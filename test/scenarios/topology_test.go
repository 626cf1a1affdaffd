package scenarios_test

import (
	"fmt"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	sriov  = "sriovnetwork.k8snetworkplumbingwg.io"
	draCPU = "dra.cpu"
)

var _ = scenario("gpu-with-nic.yaml", "pairs a GPU with the RDMA card behind its PCIe root", func(s *scene) {
	s.install(deviceClass(sriov, sriov))
	s.add(machine{name: "rdma-0", publishes: map[string]string{nvidia: "nvidia-h100-8"}})
	s.namespace("rdma", nil)
	s.apply("gpu-with-nic.yaml")
	Eventually(pool("rdma-h100")).Should(haveDevices(devices{total: 8, available: 8}))
	Eventually(profile("gpu-with-nic")).Should(bePublished(1))

	pods := s.refuse("rdma", template("gpu-with-nic")) // No SriovResourcePolicy selects a card yet.
	s.add(machine{name: "rdma-1", publishes: map[string]string{nvidia: "nvidia-h100-8", sriov: "sriov-rails-7"}})
	Eventually(states(pods)).Should(Equal(state{running: 1}))
	pods = append(pods, s.run(6, "rdma", template("gpu-with-nic"))...)
	Expect(nodesOf(pods)).To(HaveEach("rdma-1"))
	for _, pod := range pods {
		roots := attributesOf(pod, pcieRoot)
		Expect(roots["gpu"]).To(HaveLen(1))
		Expect(roots["nic"]).To(Equal(roots["gpu"]))
		Expect(parametersOf(pod)).To(ConsistOf(ContainSubstring("VfConfig")))
	}
	s.refuse("rdma", template("gpu-with-nic")) // One GPU is left, and a card that is behind no known root.
	Eventually(pool("rdma-h100")).Should(And(
		haveDevices(devices{total: 16, allocated: 7, available: 9}), haveClaims(7, 1)))
})

var _ = scenario("gpu-nic-rails.yaml", "gives eight GPUs, each with the card of its rail", func(s *scene) {
	s.install(deviceClass(sriov, sriov))
	s.add(
		machine{name: "rails-short", publishes: map[string]string{nvidia: "nvidia-h100-8", sriov: "sriov-rails-7"}},
		machine{name: "rails-full", publishes: map[string]string{nvidia: "nvidia-h100-8", sriov: "sriov-rails-8"}},
	)
	s.namespace("rails", nil)
	s.apply("gpu-nic-rails.yaml")
	Eventually(pool("rails-h100")).Should(haveDevices(devices{total: 16, available: 16}))
	Eventually(profile("train-8-rails")).Should(bePublished(1))

	pods := s.run(1, "rails", template("train-8-rails"))
	Expect(nodesOf(pods)).To(Equal([]string{"rails-full"}))
	roots := attributesOf(pods[0], pcieRoot)
	Expect(roots).To(HaveLen(16))
	for i := range 8 {
		Expect(roots[fmt.Sprint("nic-", i)]).To(Equal(roots[fmt.Sprint("gpu-", i)]))
	}
	s.refuse("rails", template("train-8-rails"))
	Eventually(pool("rails-h100")).Should(And(
		haveDevices(devices{total: 16, allocated: 8, available: 8}), haveClaims(1, 1)))
})

var _ = scenario("gpu-and-cpu-numa.yaml", "gives a GPU and CPUs of one NUMA node, with one vendor", func(s *scene) {
	s.install(deviceClass(draCPU, draCPU))
	s.add(
		machine{name: "trading-nvidia", publishes: map[string]string{nvidia: "nvidia-h100-8", draCPU: "dra-cpu"}},
		machine{name: "trading-amd", publishes: map[string]string{amd: "amd-mi300x-8", draCPU: "dra-cpu"}},
	)
	s.namespace("trading", nil)
	s.apply("gpu-and-cpu-numa.yaml")
	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: trading-mi300x}
spec: {driver: {name: gpu.amd.com}}
---
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: never-with-amd}
spec:
  namespaces: {names: [trading]}
  requests:
  - {name: gpu, exactly: {poolName: trading-mi300x}}
  - {name: cpu, exactly: {deviceClassName: dra.cpu, capacityRequests: [{name: dra.cpu/cpu, amount: 16}]}}
  constraints: [{requests: [gpu, cpu], matchAttribute: resource.kubernetes.io/numaNode}]
`)
	Eventually(pool("trading-h100")).Should(haveDevices(devices{total: 8, available: 8}))
	Eventually(pool("trading-mi300x")).Should(haveDevices(devices{total: 8, available: 8}))
	Eventually(profile("gpu-and-16-cpus")).Should(bePublished(1))
	Eventually(profile("never-with-amd")).Should(bePublished(1))

	pods := s.run(4, "trading", template("gpu-and-16-cpus")) // 64 CPUs
	Expect(nodesOf(pods)).To(HaveEach("trading-nvidia"))
	for _, pod := range pods {
		sockets := attributesOf(pod, numaNode)
		Expect(sockets["gpu"]).To(Equal([]string{sockets["cpu"][0]}))
	}
	s.refuse("trading", template("gpu-and-16-cpus"))
	s.refuse("trading", template("never-with-amd"))
	Eventually(pool("trading-h100")).Should(And(
		haveDevices(devices{total: 8, allocated: 4, available: 4}), haveClaims(4, 1)))
	Eventually(pool("trading-mi300x")).Should(And(haveDevices(devices{total: 8, available: 8}), haveClaims(0, 1)))
})

// twoZones makes a board in each of two zones.
func twoZones(s *scene) {
	for _, zone := range []string{"zone-a", "zone-b"} {
		s.add(machine{
			name: "board-" + zone, labels: map[string]string{corev1.LabelTopologyZone: zone},
			publishes: map[string]string{nvidia: "nvidia-h100-8"},
		})
	}
}

var _ = scenario("two-zones.yaml", "counts a zone, and keeps pods in it by their node selector only", func(s *scene) {
	twoZones(s)
	s.namespace("data-a", map[string]string{"data": "zone-a"})
	s.apply("two-zones.yaml")
	Eventually(pool("h100-zone-a")).Should(And(haveDevices(devices{total: 8, available: 8}), haveOutOfScope(8)))
	Eventually(profile("train-zone-a")).Should(bePublished(1))

	anywhere := s.run(2, "data-a", template("train-zone-a"))
	Expect(nodesOf(anywhere)).To(Equal([]string{"board-zone-a", "board-zone-b"}))
	Eventually(pool("h100-zone-a")).Should(And(haveDevices(devices{total: 8, allocated: 8}), haveClaims(2, 0)))
	s.end(anywhere...)

	inZone := onNodes(corev1.LabelTopologyZone, "zone-a")
	Expect(nodesOf(s.run(1, "data-a", template("train-zone-a"), inZone))).To(Equal([]string{"board-zone-a"}))
	s.refuse("data-a", template("train-zone-a"), inZone)
})

var _ = scenario("two-zones-enforced.yaml", "puts the zone into every pod that names the template", func(s *scene) {
	twoZones(s)
	s.namespace("bound-a", map[string]string{"data": "zone-a"})
	s.apply("two-zones.yaml")
	s.apply("two-zones-enforced.yaml")
	Eventually(profile("train-zone-a")).Should(bePublished(1))
	selectorOf := func(wishes ...wish) func() (map[string]string, error) {
		return func() (map[string]string, error) {
			pod := newPod("bound-a", wishes...)
			err := k8s.Create(suiteContext, pod, client.DryRunAll)
			return pod.Spec.NodeSelector, err
		}
	}
	zoneA := HaveKeyWithValue(corev1.LabelTopologyZone, "zone-a")
	Eventually(selectorOf(template("train-zone-a"))).Should(zoneA)
	Expect(selectorOf(template("train-zone-a"), onNodes(corev1.LabelOSStable, "linux"))()).To(
		And(zoneA, HaveKeyWithValue(corev1.LabelOSStable, "linux")))
	Expect(selectorOf(template("another"))()).To(BeEmpty())

	Expect(nodesOf(s.run(1, "bound-a", template("train-zone-a")))).To(Equal([]string{"board-zone-a"}))
	s.refuse("bound-a", template("train-zone-a"))
	past := s.run(1, "bound-a", limit("deviceclass.resource.kubernetes.io/h100-zone-a.gpupool.dev", "8"))
	Expect(nodesOf(past)).To(Equal([]string{"board-zone-b"}))
})

var _ = scenario("reserved-nodes.yaml", "keeps each side on its nodes by device taints", func(s *scene) {
	s.namespace("team-x", nil)
	s.namespace("everybody-else", nil)
	s.apply("reserved-nodes.yaml") // The rules are there before the nodes.
	s.add(
		machine{
			name: "gpu-node-31", labels: map[string]string{"reserved-for": "team-x"},
			publishes: map[string]string{nvidia: "nvidia-h100-8"},
		},
		machine{name: "gpu-node-32", publishes: map[string]string{nvidia: "nvidia-h100-8"}},
	)
	for _, name := range []string{"h100-team-x", "h100-common"} {
		Eventually(pool(name)).Should(And(haveDevices(devices{total: 8, unavailable: 8}), haveOutOfScope(8)))
	}
	Eventually(profile("team-x-8")).Should(bePublished(1))
	Eventually(existence(&resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "everybody-else", Name: "common-8"},
	})).Should(Succeed())
	s.end(s.refuse("team-x", limit("deviceclass.resource.kubernetes.io/h100-team-x.gpupool.dev", "1"))...)

	reserved := s.run(1, "team-x", template("team-x-8"))
	Expect(nodesOf(reserved)).To(Equal([]string{"gpu-node-31"}))
	s.end(s.refuse("team-x", template("team-x-8"))...) // gpu-node-32 is free.
	s.end(reserved...)
	Expect(nodesOf(s.run(1, "everybody-else", template("common-8")))).To(Equal([]string{"gpu-node-32"}))
	s.refuse("everybody-else", template("common-8")) // gpu-node-31 is free.
	Eventually(pool("h100-team-x")).Should(And(haveDevices(devices{total: 8, unavailable: 8}), haveClaims(0, 0)))
	Eventually(pool("h100-common")).Should(And(haveDevices(devices{total: 8, allocated: 8}), haveClaims(1, 1)))
})
