package scenarios_test

import (
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

const hami = "hami-core-gpu.project-hami.io"

var _ = scenario("mig-static.yaml", "counts slices exactly, and gives them by claim and by limit", func(s *scene) {
	s.add(machine{name: "cut-0", publishes: map[string]string{nvidia: "nvidia-a100-mig-static"}})
	s.namespace("small-models", map[string]string{"gpu": "small-mig"})
	s.apply("mig-static.yaml")
	Eventually(pool("a100-1g")).Should(And(
		haveDevices(devices{total: 13, available: 13}),
		haveExcluded("devices.type", 1, Not(BeEmpty())), haveExcluded("devices.partitionProfiles", 1, Not(BeEmpty()))))
	Eventually(profile("small-mig")).Should(bePublished(1))
	Eventually(profile("two-mig-one-card")).Should(bePublished(1))

	pairs := s.run(5, "small-models", template("two-mig-one-card"))
	for _, pod := range pairs {
		cards := attributesOf(pod, "parentUUID")["gpu"]
		Expect(cards).To(HaveLen(2))
		Expect(cards[0]).To(Equal(cards[1]))
	}
	one := s.run(2, "small-models", template("small-mig"))
	old := s.run(1, "small-models", limit("nvidia.com/mig-1g.10gb", "1"))
	for _, pod := range append(one, old...) {
		for _, profiles := range attributesOf(pod, "profile") {
			Expect(profiles).To(Equal([]string{"1g.10gb"}))
		}
	}
	s.refuse("small-models", template("small-mig"))
	Eventually(pool("a100-1g")).Should(And(haveDevices(devices{total: 13, allocated: 13}), haveClaims(8, 1)))
})

var _ = scenario("mig-dynamic.yaml", "cuts cards to measure, and says what that blocks", func(s *scene) {
	s.add(machine{name: "measure-0", publishes: map[string]string{nvidia: "nvidia-h100-mig-dynamic"}})
	s.namespace("inference", map[string]string{"gpu": "cut-to-measure"})
	s.apply("mig-dynamic.yaml")
	Eventually(pool("h100-whole")).Should(haveDevices(devices{total: 2, available: 2}))
	Eventually(pool("h100-3g")).Should(haveDevices(devices{total: 4, available: 4}))
	Eventually(pool("h100-1g")).Should(haveDevices(devices{total: 14, available: 14}))
	Eventually(profile("infer-small")).Should(bePublished(1))
	Eventually(profile("infer-large")).Should(bePublished(1))

	small := s.run(1, "inference", template("infer-small"))
	Expect(attributesOf(small[0], "profile")).To(HaveKeyWithValue("gpu/small", []string{"1g.10gb"}))
	Eventually(pool("h100-whole")).Should(haveDevices(devices{total: 2, available: 1, unavailable: 1}))
	Eventually(pool("h100-3g")).Should(haveDevices(devices{total: 4, available: 3, unavailable: 1}))

	s.run(1, "inference", template("infer-large"))
	s.refuse("inference", template("infer-large"))
	Eventually(pool("h100-1g")).Should(haveDevices(devices{total: 14, allocated: 1, available: 6, unavailable: 7}))
	s.run(6, "inference", template("infer-small"))
	s.refuse("inference", template("infer-small"))
	Eventually(pool("h100-whole")).Should(haveDevices(devices{total: 2, allocated: 1, unavailable: 1}))
	Eventually(pool("h100-3g")).Should(haveDevices(devices{total: 4, unavailable: 4}))

	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: h100-any}
spec: {driver: {name: gpu.nvidia.com}, devices: {type: Any}}
`)
	Eventually(pool("h100-any")).Should(haveNoSum())
})

var _ = scenario("mi300x-cpx.yaml", "keeps eight partitions on one card", func(s *scene) {
	s.add(machine{name: "cpx-0", publishes: map[string]string{amd: "amd-mi300x-cpx-2"}})
	s.namespace("cpx", map[string]string{"gpu": "cpx"})
	s.apply("mi300x-cpx.yaml")
	Eventually(pool("mi300x-cpx")).Should(haveDevices(devices{total: 16, available: 16}))
	Eventually(profile("cpx-8-same-card")).Should(bePublished(1))
	Eventually(profile("cpx-1")).Should(bePublished(1))

	cards := s.run(2, "cpx", template("cpx-8-same-card"))
	var addresses []string
	for _, pod := range cards {
		of := attributesOf(pod, pciBusID)["gpu"]
		Expect(of).To(And(HaveLen(8), HaveEach(of[0])))
		addresses = append(addresses, of[0])
	}
	Expect(addresses[0]).NotTo(Equal(addresses[1]))
	s.end(s.refuse("cpx", template("cpx-1"))...)
	s.end(cards[0])
	s.run(1, "cpx", template("cpx-1"))
	s.refuse("cpx", template("cpx-8-same-card"))
	Eventually(pool("mi300x-cpx")).Should(And(
		haveDevices(devices{total: 16, allocated: 9, available: 7}), haveClaims(2, 1)))

	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: cdna3}
spec: {driver: {name: gpu.amd.com}, devices: {architectures: [CDNA3]}}
`)
	Eventually(pool("cdna3")).Should(haveCondition("Accepted=False/UnknownDeviceProperty"))
})

var _ = scenario("consumable-shares.yaml", "shares some cards, and gives others whole", func(s *scene) {
	s.add(
		machine{name: "shared-0", publishes: map[string]string{nvidia: "nvidia-l40s-shares-2"}},
		machine{name: "whole-0", publishes: map[string]string{nvidia: "nvidia-l40s-a2"}},
	)
	s.namespace("notebooks", map[string]string{"gpu": "notebooks"})
	s.apply("consumable-shares.yaml")
	Eventually(pool("l40s-shared")).Should(haveDevices(devices{total: 2, available: 2}))
	Eventually(pool("l40s-exclusive")).Should(haveDevices(devices{total: 2, available: 2}))
	Eventually(profile("notebook")).Should(bePublished(1))
	Eventually(profile("train-2-l40s")).Should(bePublished(1))

	notebooks := s.run(8, "notebooks", template("notebook"))
	Expect(nodesOf(notebooks)).To(HaveEach("shared-0"))
	Expect(nodesOf(s.run(1, "notebooks", template("train-2-l40s")))).To(Equal([]string{"whole-0"}))
	ninth := s.refuse("notebooks", template("notebook"))
	s.refuse("notebooks", template("train-2-l40s"))
	Eventually(pool("l40s-shared")).Should(And(haveDevices(devices{total: 2, allocated: 2}), haveClaims(8, 1)))
	Eventually(pool("l40s-exclusive")).Should(And(haveDevices(devices{total: 2, allocated: 2}), haveClaims(1, 1)))
	s.end(append(notebooks, ninth...)...)

	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: notebook-12gi}
spec:
  namespaces: {names: [notebooks]}
  requests:
  - name: gpu
    exactly: {poolName: l40s-shared, capacityRequests: [{name: shares, amount: 1}, {name: memory, amount: 12Gi}]}
---
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: l40s-careless}
spec: {driver: {name: gpu.nvidia.com}, devices: {models: [NVIDIA L40S]}}
---
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: train-careless}
spec:
  namespaces: {names: [notebooks]}
  requests: [{name: gpu, exactly: {poolName: l40s-careless, count: 2}}]
`)
	Eventually(profile("notebook-12gi")).Should(bePublished(1))
	Eventually(profile("train-careless")).Should(bePublished(1))
	large := s.run(6, "notebooks", template("notebook-12gi"))
	s.end(append(large, s.refuse("notebooks", template("notebook-12gi"))...)...)

	trainings := s.run(2, "notebooks", template("train-careless"), onNodes(corev1.LabelHostname, "shared-0"))
	Expect(devicesOf(trainings[0])).To(Equal(devicesOf(trainings[1])))
	s.run(1, "notebooks", template("notebook"))
})

var _ = scenario("hami-fractions.yaml", "fits four quarters on a card, by the published names", func(s *scene) {
	s.add(machine{name: "fraction-0", publishes: map[string]string{hami: "hami-nvidia"}})
	s.namespace("serving", nil)
	s.apply("hami-fractions.yaml")
	Eventually(pool("hami-h100")).Should(haveDevices(devices{total: 2, available: 2}))
	Eventually(profile("quarter-h100")).Should(And(bePublished(1), HaveField("Status.Hazards", BeEmpty())))

	quarters := s.run(8, "serving", template("quarter-h100"))
	s.end(append(quarters, s.refuse("serving", template("quarter-h100"))...)...)

	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: third-in-fact}
spec:
  namespaces: {names: [serving]}
  requests:
  - name: gpu
    exactly: {poolName: hami-h100, capacityRequests: [{name: memory, amount: 20Gi}, {name: cores, amount: 25}]}
---
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: without-cores}
spec:
  namespaces: {names: [serving]}
  requests: [{name: gpu, exactly: {poolName: hami-h100, capacityRequests: [{name: memory, amount: 20389Mi}]}}]
---
apiVersion: gpupool.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: other-name}
spec:
  namespaces: {names: [serving]}
  requests:
  - name: gpu
    exactly:
      poolName: hami-h100
      capacityRequests: [{name: hami-core-gpu.project-hami.io/memory, amount: 20389Mi}, {name: cores, amount: 25}]
`)
	Eventually(profile("third-in-fact")).Should(bePublished(1))
	Eventually(profile("other-name")).Should(bePublished(1))
	Eventually(profile("without-cores")).Should(And(bePublished(1), HaveField("Status.Hazards",
		ConsistOf(v1alpha1.ReasonCount{Reason: v1alpha1.HazardTakesWholeDevice, Count: 1}))))
	s.refuse("serving", template("other-name"))
	thirds := s.run(6, "serving", template("third-in-fact"))
	s.end(append(thirds, s.refuse("serving", template("third-in-fact"))...)...)
	s.run(2, "serving", template("without-cores"))
	s.refuse("serving", template("without-cores"))
})

var _ = scenario("time-slicing.yaml", "shares a GPU among containers, and makes no more GPUs", func(s *scene) {
	s.add(machine{name: "sliced-0", publishes: map[string]string{nvidia: "nvidia-l40s-a2"}})
	s.namespace("sliced", map[string]string{"gpu": "sliced"})
	s.apply("time-slicing.yaml")
	Eventually(pool("sliced-l40s")).Should(haveDevices(devices{total: 2, available: 2}))
	Eventually(profile("side-by-side")).Should(bePublished(1))

	pods := s.run(2, "sliced", containers(4), template("side-by-side"))
	for _, pod := range pods {
		Expect(devicesOf(pod)).To(HaveLen(1))
		Expect(parametersOf(pod)).To(ConsistOf(ContainSubstring("TimeSlicing")))
	}
	s.refuse("sliced", containers(4), template("side-by-side"))
	Eventually(pool("sliced-l40s")).Should(And(haveDevices(devices{total: 2, allocated: 2}), haveClaims(2, 1)))
})

var _ = scenario("shared-claim.yaml", "runs several pods on the GPU of one claim", func(s *scene) {
	s.add(
		machine{name: "mps-0", publishes: map[string]string{nvidia: "nvidia-l40s-a2"}},
		machine{name: "mps-1", publishes: map[string]string{nvidia: "nvidia-l40s-a2"}},
	)
	s.namespace("mps", nil)
	s.apply("shared-claim.yaml")
	Eventually(pool("mps-l40s")).Should(haveDevices(devices{total: 4, available: 4}))

	pods := s.run(3, "mps", sharedClaim("mps-gpu"))
	Expect(nodesOf(pods)).To(HaveEach(pods[0].Spec.NodeName))
	Expect(parametersOf(pods[0])).To(ConsistOf(ContainSubstring("MPS")))
	Eventually(pool("mps-l40s")).Should(And(
		haveDevices(devices{total: 4, allocated: 1, available: 3}), haveClaims(1, 0)))
	s.end(pods[0], pods[1])
	Expect(states(pods[2:])()).To(Equal(state{running: 1}))
	Expect(devicesOf(pods[2])).To(HaveLen(1))
	s.end(pods[2])
	Eventually(pool("mps-l40s")).Should(And(haveDevices(devices{total: 4, available: 4}), haveClaims(0, 0)))
})

var _ = scenario("passthrough.yaml", "knows that a device and its passthrough twin are one", func(s *scene) {
	s.add(machine{name: "vm-0", publishes: map[string]string{nvidia: "nvidia-vfio"}})
	s.namespace("virtual-machines", nil)
	s.apply("passthrough.yaml")
	Eventually(pool("vm-h100")).Should(haveDevices(devices{total: 1, available: 1}))
	Eventually(pool("container-h100")).Should(haveDevices(devices{total: 1, available: 1}))
	Eventually(profile("vm-gpu")).Should(bePublished(1))
	Eventually(profile("container-gpu")).Should(bePublished(1))

	machines := s.run(1, "virtual-machines", template("vm-gpu"))
	Expect(attributesOf(machines[0], "type")).To(Equal(map[string][]string{"gpu": {"vfio"}}))
	Expect(parametersOf(machines[0])).To(ConsistOf(ContainSubstring("VfioDeviceConfig")))
	Eventually(pool("vm-h100")).Should(haveDevices(devices{total: 1, allocated: 1}))
	Eventually(pool("container-h100")).Should(haveDevices(devices{total: 1, unavailable: 1}))

	s.run(1, "virtual-machines", template("container-gpu")) // The scheduler does not know.
	s.end(machines...)
	Eventually(pool("vm-h100")).Should(haveDevices(devices{total: 1, unavailable: 1}))
	Eventually(pool("container-h100")).Should(haveDevices(devices{total: 1, allocated: 1}))
})

var _ = scenario("passthrough-intel.yaml", "publishes the class under the driver's one name", func(s *scene) {
	s.add(machine{name: "desktop-0", publishes: map[string]string{intel: "intel-flex-2"}})
	s.namespace("virtual-desktops", nil)
	s.applyYAML(`
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: vm-any-name}
spec: {driver: {name: gpu.intel.com}, devices: {type: Passthrough}}
---
apiVersion: gpupool.dev/v1alpha1
kind: GpuPool
metadata: {name: container-flex}
spec: {driver: {name: gpu.intel.com}}
`)
	chart := deviceClass("gpu-vfio.intel.com", intel)
	s.install(chart)
	s.apply("passthrough-intel.yaml")
	Eventually(pool("vm-any-name")).Should(haveCondition("Accepted=False/DeviceClassNameRequired"))
	Eventually(pool("vm-flex")).Should(haveCondition("ClassPublished=False/NameTaken"))
	Expect(k8s.Delete(suiteContext, chart)).To(Succeed())
	Eventually(pool("vm-flex")).Should(haveDevices(devices{total: 2, available: 1, unavailable: 1}))
	Eventually(profile("vm-flex-1")).Should(bePublished(1))

	s.run(1, "virtual-desktops", template("vm-flex-1"))
	s.refuse("virtual-desktops", template("vm-flex-1")) // The other card is not healthy.
	Eventually(pool("vm-flex")).Should(And(
		haveDevices(devices{total: 2, allocated: 1, unavailable: 1}), haveClaims(1, 1)))
	Eventually(pool("container-flex")).Should(And(
		haveDevices(devices{total: 2, allocated: 1, unavailable: 1}), haveClaims(0, 0)))
})
