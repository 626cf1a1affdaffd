package scenarios_test

import (
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	nvidia       = "gpu.nvidia.com"
	amd          = "gpu.amd.com"
	instanceType = "node.kubernetes.io/instance-type"
	numaNode     = "resource.kubernetes.io/numaNode"
	pcieRoot     = "resource.kubernetes.io/pcieRoot"
	pciBusID     = "resource.kubernetes.io/pciBusID"
)

var _ = scenario("whole-h100.yaml", "gives whole boards, or four GPUs of one socket, and eight of one socket never", func(s *scene) {
	p5 := map[string]string{instanceType: "p5.48xlarge"}
	s.add(
		machine{name: "dgx-0", labels: p5, publishes: map[string]string{nvidia: "nvidia-h100-8"}},
		machine{name: "dgx-1", labels: p5, publishes: map[string]string{nvidia: "nvidia-h100-8"}},
	)
	s.namespace("llm", map[string]string{"team": "training"})
	s.apply("whole-h100.yaml")
	Eventually(pool("h100-board")).Should(haveDevices(devices{total: 16, available: 16}))
	Eventually(profile("train-8-h100")).Should(bePublished(1))
	Eventually(profile("train-4-h100-numa")).Should(bePublished(1))

	halves := s.run(4, "llm", template("train-4-h100-numa"))
	for _, pod := range halves {
		Expect(attributesOf(pod, numaNode)).To(HaveKeyWithValue("gpu", Or(
			Equal([]string{"0", "0", "0", "0"}), Equal([]string{"1", "1", "1", "1"}))))
	}
	board := s.refuse("llm", template("train-8-h100"))
	Eventually(pool("h100-board")).Should(And(haveDevices(devices{total: 16, allocated: 16}), haveClaims(4, 1)))
	s.end(halves...)
	Eventually(states(board)).Should(Equal(state{running: 1}))
	Eventually(pool("h100-board")).Should(And(haveDevices(devices{total: 16, allocated: 8, available: 8}), haveClaims(1, 0)))

	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: never-8-h100}
spec:
  namespaces: {names: [llm]}
  requests: [{name: gpu, exactly: {poolName: h100-board, count: 8}}]
  constraints: [{matchAttribute: resource.kubernetes.io/numaNode}]
---
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: never-2-h100}
spec:
  namespaces: {names: [llm]}
  requests: [{name: gpu, exactly: {poolName: h100-board, count: 2}}]
  constraints: [{matchAttribute: resource.kubernetes.io/pcieRoot}]
`)
	for _, name := range []string{"never-8-h100", "never-2-h100"} {
		Eventually(profile(name)).Should(bePublished(1))
		s.refuse("llm", template(name))
	}
	Eventually(pool("h100-board")).Should(haveClaims(1, 2), "although a board is idle")
})

var _ = scenario("bank-16gb.yaml", "takes whichever cards have the memory and the capability, four of one model", func(s *scene) {
	s.add(
		machine{name: "bank-a2", publishes: map[string]string{nvidia: "nvidia-a2-4"}},
		machine{name: "bank-l4", publishes: map[string]string{nvidia: "nvidia-l4-4"}},
		machine{name: "bank-t4", publishes: map[string]string{nvidia: "nvidia-t4-4"}},
		machine{name: "bank-mixed", publishes: map[string]string{nvidia: "nvidia-l40s-a2"}},
		machine{name: "bank-mig", publishes: map[string]string{nvidia: "nvidia-a100-mig-static"}},
	)
	s.namespace("bank-models", nil)
	s.apply("bank-16gb.yaml")
	Eventually(pool("bank-nvidia")).Should(And(
		haveDevices(devices{total: 17, available: 17}), haveExcluded("devices.type", 14, Not(BeEmpty()))))
	Eventually(profile("scoring-4x16gb")).Should(bePublished(1))

	pods := s.run(2, "bank-models", template("scoring-4x16gb"))
	Expect(nodesOf(pods)).To(Equal([]string{"bank-a2", "bank-l4"}))
	s.end(s.refuse("bank-models", template("scoring-4x16gb"))...)

	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: of-any-model}
spec:
  namespaces: {names: [bank-models]}
  requests:
  - name: gpu
    exactly: {poolName: bank-nvidia, count: 4, devices: {memory: {min: 15G}, cudaComputeCapability: {min: "8.0"}}}
---
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: nominal-16gb}
spec: {driver: {name: gpu.nvidia.com}, devices: {memory: {min: 16Gi}}}
`)
	Eventually(profile("of-any-model")).Should(bePublished(1))
	Expect(nodesOf(s.run(1, "bank-models", template("of-any-model")))).To(Equal([]string{"bank-mixed"}))
	Eventually(pool("nominal-16gb")).Should(haveExcluded("devices.memory", 10, Equal("15Gi is below 16Gi")))
})

var _ = scenario("mixed-cards.yaml", "gives a pod one card of each model", func(s *scene) {
	s.add(machine{name: "studio-0", publishes: map[string]string{nvidia: "nvidia-l40s-a2"}})
	s.namespace("video", nil)
	s.apply("mixed-cards.yaml")
	Eventually(pool("video-l40s")).Should(haveDevices(devices{total: 2, available: 2}))
	Eventually(pool("video-a2")).Should(haveDevices(devices{total: 2, available: 2}))
	Eventually(profile("encode-and-infer")).Should(bePublished(1))

	pods := s.run(2, "video", template("encode-and-infer"))
	for _, pod := range pods {
		Expect(attributesOf(pod, "productName")).To(Equal(map[string][]string{"infer": {"NVIDIA L40S"}, "encode": {"NVIDIA A2"}}))
	}
	s.refuse("video", template("encode-and-infer"))
	Eventually(pool("video-l40s")).Should(And(haveDevices(devices{total: 2, allocated: 2}), haveClaims(2, 1)))
	Eventually(pool("video-a2")).Should(And(haveDevices(devices{total: 2, allocated: 2}), haveClaims(2, 1)))
})

var _ = scenario("any-80g.yaml", "takes cards of either vendor, and small ones never", func(s *scene) {
	s.add(
		machine{name: "any-h100", publishes: map[string]string{nvidia: "nvidia-h100-8"}},
		machine{name: "any-l4", publishes: map[string]string{nvidia: "nvidia-l4-4"}},
		machine{name: "any-mi300x", publishes: map[string]string{amd: "amd-mi300x-8"}},
	)
	s.namespace("any-80g", map[string]string{"gpu": "any-80g"})
	s.apply("any-80g.yaml")
	Eventually(pool("any-nvidia")).Should(haveDevices(devices{total: 12, available: 12}))
	Eventually(pool("any-amd")).Should(haveDevices(devices{total: 8, available: 8}))
	Eventually(profile("any-80g")).Should(bePublished(1))

	pods := s.run(4, "any-80g", template("any-80g"))
	Expect(nodesOf(pods)).To(Equal([]string{"any-h100", "any-h100", "any-mi300x", "any-mi300x"}))
	s.refuse("any-80g", template("any-80g"))
	Eventually(pool("any-nvidia")).Should(haveDevices(devices{total: 12, allocated: 8, available: 4}))
	Eventually(pool("any-amd")).Should(haveDevices(devices{total: 8, allocated: 8}))
})

var _ = scenario("fallback.yaml", "uses all alternatives, each with its own constraint, and prefers in a node only", func(s *scene) {
	s.add(
		machine{name: "first-h100", publishes: map[string]string{nvidia: "nvidia-h100-8"}},
		machine{name: "then-a100", publishes: map[string]string{nvidia: "nvidia-a100-8"}},
		machine{name: "then-mi300x", publishes: map[string]string{amd: "amd-mi300x-8"}},
	)
	s.namespace("any-gpu", map[string]string{"team": "any-gpu"})
	s.apply("fallback.yaml")
	Eventually(profile("train-any")).Should(bePublished(1))
	Eventually(pool("first-h100")).Should(haveDevices(devices{total: 8, available: 8}))
	Eventually(pool("then-a100")).Should(haveDevices(devices{total: 8, available: 8}))
	Eventually(pool("then-mi300x")).Should(haveDevices(devices{total: 8, available: 8}))

	pods := s.run(5, "any-gpu", template("train-any"))
	Expect(nodesOf(pods)).To(Equal([]string{"first-h100", "first-h100", "then-a100", "then-mi300x", "then-mi300x"}))
	for _, pod := range pods {
		switch pod.Spec.NodeName {
		case "first-h100":
			Expect(attributesOf(pod, numaNode)).To(HaveKeyWithValue("gpu/h100", Or(HaveEach("0"), HaveEach("1"))))
		case "then-mi300x":
			Expect(attributesOf(pod, "numaNode")).To(HaveKeyWithValue("gpu/mi300x", Or(HaveEach("0"), HaveEach("1"))))
		}
	}
	s.end(s.refuse("any-gpu", template("train-any"))...)

	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: one-constraint}
spec:
  namespaces: {names: [any-gpu]}
  requests:
  - name: gpu
    firstAvailable: [{name: h100, poolName: first-h100, count: 4}, {name: mi300x, poolName: then-mi300x, count: 4}]
  constraints: [{requests: [gpu], matchAttribute: resource.kubernetes.io/numaNode}]
`)
	Eventually(profile("one-constraint")).Should(bePublished(1))
	for _, pod := range pods {
		if pod.Spec.NodeName == "then-mi300x" {
			s.end(pod)
		}
	}
	s.end(s.refuse("any-gpu", template("one-constraint"))...)
	for _, pod := range pods {
		if pod.Spec.NodeName != "then-mi300x" {
			s.end(pod)
		}
	}
	Eventually(pool("first-h100")).Should(haveDevices(devices{total: 8, available: 8}))

	s.run(1, "any-gpu", cpus("47"), onNodes(corev1.LabelHostname, "first-h100"))
	Expect(nodesOf(s.run(1, "any-gpu", template("train-any")))).To(Equal([]string{"then-a100"}), "although 8 H100 are free")
})

// cpus asks for CPUs.
func cpus(amount string) wish {
	return func(spec *corev1.PodSpec) {
		spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
}
