package scenarios_test

import (
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	nvidia        = "gpu.nvidia.com"
	amd           = "gpu.amd.com"
	intel         = "gpu.intel.com"
	rebellions    = "npu.rebellions.ai"
	computeDomain = "compute-domain.nvidia.com"
	instanceType  = "node.kubernetes.io/instance-type"
	numaNode      = "resource.kubernetes.io/numaNode"
	pcieRoot      = "resource.kubernetes.io/pcieRoot"
	pciBusID      = "resource.kubernetes.io/pciBusID"
)

var _ = scenario("whole-h100.yaml", "gives whole boards, or four GPUs of one socket, never eight", func(s *scene) {
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
	Eventually(pool("h100-board")).Should(And(
		haveDevices(devices{total: 16, allocated: 8, available: 8}), haveClaims(1, 0)))

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

var _ = scenario("bank-16gb.yaml", "takes cards by memory and capability, four of one model", func(s *scene) {
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
		Expect(attributesOf(pod, "productName")).To(Equal(map[string][]string{
			"infer": {"NVIDIA L40S"}, "encode": {"NVIDIA A2"},
		}))
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

var _ = scenario("fallback.yaml", "uses all alternatives, and prefers in a node only", func(s *scene) {
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
	last := s.run(1, "any-gpu", template("train-any"))
	Expect(nodesOf(last)).To(Equal([]string{"then-a100"}), "although 8 H100 are free")
})

// cpus asks for CPUs.
func cpus(amount string) wish {
	return func(spec *corev1.PodSpec) {
		spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
}

var _ = scenario("multi-node-nvlink.yaml", "gives whole trays beside the channel of a ComputeDomain", func(s *scene) {
	tray := map[string]string{nvidia: "nvidia-gb200-4", computeDomain: "nvidia-compute-domain"}
	s.add(
		machine{name: "tray-0", publishes: tray},
		machine{name: "tray-1", publishes: tray},
		machine{name: "desk", publishes: map[string]string{nvidia: "nvidia-gb10"}},
	)
	s.namespace("rack-scale", nil)
	s.install(deviceClass("compute-domain-default-channel.nvidia.com", computeDomain))
	s.applyYAML(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {namespace: rack-scale, name: job-channel}
spec:
  spec:
    devices:
      requests:
      - name: channel
        exactly:
          deviceClassName: compute-domain-default-channel.nvidia.com
          selectors: [{cel: {expression: 'device.attributes["compute-domain.nvidia.com"].type == "channel"'}}]
---
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: sized}
spec: {driver: {name: gpu.nvidia.com}, devices: {memory: {min: 1Gi}}}
`)
	s.apply("multi-node-nvlink.yaml")
	Eventually(pool("gb200")).Should(And(
		haveDevices(devices{total: 8, available: 8}), haveExcluded("devices.models", 1, Not(BeEmpty()))))
	Eventually(pool("sized")).Should(And(
		haveDevices(devices{total: 8, available: 8}), haveExcluded("devices.memory", 1, ContainSubstring("not published"))))
	Eventually(profile("gb200-tray")).Should(bePublished(1))

	job := s.run(2, "rack-scale", template("gb200-tray"), template("job-channel"))
	Expect(nodesOf(job)).To(Equal([]string{"tray-0", "tray-1"}))
	Expect(devicesOf(job[0])).To(Equal([]string{"channel=channel-0", "gpu=gpu-0", "gpu=gpu-1", "gpu=gpu-2", "gpu=gpu-3"}))
	s.refuse("rack-scale", template("gb200-tray"), template("job-channel"))
	Eventually(pool("gb200")).Should(And(haveDevices(devices{total: 8, allocated: 8}), haveClaims(2, 1)))
})

var _ = scenario("intel-flex.yaml", "takes cards that are healthy or of unknown health", func(s *scene) {
	s.add(
		machine{name: "flex-watched", publishes: map[string]string{intel: "intel-flex-2"}},
		machine{name: "flex-unwatched", publishes: map[string]string{intel: "intel-flex-no-xpumd-2"}},
	)
	s.namespace("transcoding", nil)
	s.apply("intel-flex.yaml")
	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: flex-sized}
spec: {driver: {name: gpu.intel.com}, devices: {memory: {min: 8Gi}}}
---
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: flex-known}
spec: {driver: {name: gpu.intel.com}, devices: {attributes: [{name: health, operator: In, values: [Healthy]}]}}
`)
	Eventually(pool("flex")).Should(And(
		haveDevices(devices{total: 3, available: 3}), haveExcluded("devices.attributes[0]", 1, Not(BeEmpty()))))
	Eventually(pool("flex-known")).Should(haveDevices(devices{total: 1, available: 1}))
	Eventually(pool("flex-sized")).Should(And(
		haveDevices(devices{total: 2, available: 1, unavailable: 1}),
		haveExcluded("devices.memory", 2, ContainSubstring("0 is below"))))
	Eventually(profile("transcode")).Should(bePublished(1))

	pods := s.run(3, "transcoding", template("transcode"))
	Expect(nodesOf(pods)).To(Equal([]string{"flex-unwatched", "flex-unwatched", "flex-watched"}))
	s.refuse("transcoding", template("transcode"))
	Eventually(pool("flex")).Should(And(haveDevices(devices{total: 3, allocated: 3}), haveClaims(3, 1)))
})

var _ = scenario("unknown-vendor.yaml", "serves a driver of which the operator knows nothing", func(s *scene) {
	s.add(machine{name: "npu-0", publishes: map[string]string{rebellions: "rebellions-npu-4"}})
	s.namespace("npu-models", map[string]string{"accelerator": "npu"})
	s.apply("unknown-vendor.yaml")
	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: npu-model}
spec: {driver: {name: npu.rebellions.ai}, devices: {models: [RBLN-CA22]}}
---
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: npu-version}
spec:
  driver: {name: npu.rebellions.ai}
  devices: {attributes: [{name: driverVersion, type: Version, operator: AtLeast, values: ["1.0"]}]}
`)
	Eventually(pool("npu")).Should(haveDevices(devices{total: 4, available: 4}))
	Eventually(pool("npu-model")).Should(haveCondition("Accepted=False/UnknownDeviceProperty"))
	Eventually(pool("npu-version")).Should(And(
		haveCondition("DevicesFound=False/NoMatchingDevice"), haveExcluded("devices.attributes[0]", 4, Not(BeEmpty()))))
	Eventually(profile("npu-1")).Should(bePublished(1))

	s.run(4, "npu-models", template("npu-1"))
	s.refuse("npu-models", template("npu-1"))
	Eventually(pool("npu")).Should(And(haveDevices(devices{total: 4, allocated: 4}), haveClaims(4, 1)))
})
