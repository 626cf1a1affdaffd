package inventory

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const benchDriver, benchClass = "gpu.nvidia.com", "h100.gpupool.dev"

// uid is a UUID of a number.
func uid(n int) types.UID { return types.UID(fmt.Sprintf("%08x-2a41-4c55-9d0a-0f6e3d1b7c11", n)) }

// benchNode is a node with the labels that clouds and kubelets set.
func benchNode(n int) *corev1.Node {
	labels := map[string]string{"kubernetes.io/hostname": fmt.Sprintf("node-%d", n)}
	for i := range 30 {
		labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-%d", i)] = "true"
	}
	return apiNode(fmt.Sprintf("node-%d", n), func(node *corev1.Node) { node.UID, node.Labels = uid(n), labels })
}

// benchSlice is a slice of a node with eight cards, in the shape of NVIDIA's driver.
func benchSlice(n int) *resourcev1.ResourceSlice {
	str := func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &s} }
	version := func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{VersionValue: &s} }
	node := fmt.Sprintf("node-%d", n)
	return apiSlice(fmt.Sprintf("0-%s-%s-q7x2c", benchDriver, node), pool(node, 1, 1), onNode(node), func(s *resourcev1.ResourceSlice) {
		s.UID, s.Spec.Driver = uid(n), benchDriver
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: uid(n)}}
		for i := range 8 {
			s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{
				Name: fmt.Sprintf("gpu-%d", i),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"type":                            str("gpu"),
					"uuid":                            str("GPU-" + string(uid(n*8+i))),
					"productName":                     str("NVIDIA H100 80GB HBM3"),
					"brand":                           str("Nvidia"),
					"architecture":                    str("Hopper"),
					"cudaComputeCapability":           version("9.0.0"),
					"driverVersion":                   version("580.126.20"),
					"cudaDriverVersion":               version("13.0.0"),
					"addressingMode":                  str("HMM"),
					"resource.kubernetes.io/pciBusID": str(fmt.Sprintf("0000:%02x:00.0", 16+i)),
					"resource.kubernetes.io/pcieRoot": str(fmt.Sprintf("pci0000:%02x", i/2)),
					"resource.kubernetes.io/numaNode": {IntValue: new(int64(i / 4))},
				},
				Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
					"memory": {Value: resource.MustParse("81559Mi")},
				},
			})
		}
	})
}

// benchClaim holds one device of a node with 8.
func benchClaim(n int) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("team-%d", n%50), Name: fmt.Sprintf("train-%d-gpu-x2b4c", n), UID: uid(1<<20 + n),
			Labels:          map[string]string{testProfile: "train-h100", "app": "train"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", UID: uid(1<<21 + n)}},
		},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{exactly("gpu", benchClass)},
		}},
		Status: resourcev1.ResourceClaimStatus{
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{
					Request: "gpu", Driver: benchDriver, Pool: fmt.Sprintf("node-%d", n/8), Device: fmt.Sprintf("gpu-%d", n%8),
				}},
			}},
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", UID: uid(1<<21 + n)}},
		},
	}
}

// fleetOf is an inventory of nodes with eight cards each, of which claims hold four fifths. Objects come from protobuf,
// as from a server, so that no text is shared that would not be.
func fleetOf(b *testing.B, nodes int) *Inventory {
	b.Helper()
	in := synced()
	for n := range nodes {
		var node corev1.Node
		overTheWire(b, benchNode(n), &node)
		in.Put(FromNode(&node))
		var slice resourcev1.ResourceSlice
		overTheWire(b, benchSlice(n), &slice)
		in.Put(FromSlice(&slice))
	}
	for n := range nodes * 8 * 4 / 5 {
		var claim resourcev1.ResourceClaim
		overTheWire(b, benchClaim(n), &claim)
		in.Put(FromClaim(&claim, testProfile))
	}
	return in
}

func overTheWire(b *testing.B, from interface{ Marshal() ([]byte, error) }, to interface{ Unmarshal([]byte) error }) {
	b.Helper()
	wire, err := from.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	if err := to.Unmarshal(wire); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkDecodeSlice(b *testing.B) {
	wire, err := benchSlice(1).Marshal()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("protobuf", func(b *testing.B) {
		for b.Loop() {
			var slice resourcev1.ResourceSlice
			if err := slice.Unmarshal(wire); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("compact", func(b *testing.B) {
		slice := benchSlice(1)
		keep := FromSlice(slice)
		for b.Loop() {
			FromSlice(slice)
		}
		runtime.KeepAlive(keep)
	})
}

func BenchmarkPutSame(b *testing.B) {
	in := synced(FromNode(benchNode(1)), FromSlice(benchSlice(1)), FromClaim(benchClaim(1), testProfile))
	for name, object := range map[string]Object{
		"slice": FromSlice(benchSlice(1)), "node": FromNode(benchNode(1)), "claim": FromClaim(benchClaim(1), testProfile),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if change := in.Put(object); !change.IsZero() {
					b.Fatal("the same again is a change")
				}
			}
		})
	}
}

func BenchmarkRecount(b *testing.B) {
	keys := CardKeys{Self: []string{"uuid", "resource.kubernetes.io/pciBusID"}, Parent: []string{"parentUUID"}}
	for _, nodes := range []int{100, 1000} {
		in := fleetOf(b, nodes)
		for name, query := range map[string]PoolQuery{
			"counting only": {Driver: benchDriver, ClassName: benchClass, CardKeys: keys},
			"with views":    {Driver: benchDriver, ClassName: benchClass, CardKeys: keys, Devices: viewMatcher{}},
		} {
			b.Run(fmt.Sprintf("%d nodes/%s", nodes, name), func(b *testing.B) {
				for b.Loop() {
					counts, _ := in.PoolCounts(query)
					if counts.Devices == nil || counts.Devices.Total != nodes*8 {
						b.Fatalf("counts are %+v", counts)
					}
				}
			})
		}
	}
}

// viewMatcher makes the view that a CEL selector needs, and nothing of it.
type viewMatcher struct{}

func (viewMatcher) Judge(driver string, device *Device) Verdict {
	return Verdict{Matches: len(device.CEL(driver).Attributes) > 0}
}

// BenchmarkHeap reports the live heap of a large fleet, per node with its slice, and per claim.
func BenchmarkHeap(b *testing.B) {
	const nodes = 10_000
	live := func() uint64 {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	perObject := func(b *testing.B, unit string, count int, put func(in *Inventory, n int)) {
		b.Helper()
		for b.Loop() {
			before := live()
			in := synced()
			for n := range count {
				put(in, n)
			}
			b.ReportMetric(float64(live()-before)/float64(count), unit)
			runtime.KeepAlive(in)
		}
	}
	b.Run("slices", func(b *testing.B) {
		perObject(b, "B/slice", nodes, func(in *Inventory, n int) {
			var slice resourcev1.ResourceSlice
			overTheWire(b, benchSlice(n), &slice)
			in.Put(FromSlice(&slice))
		})
	})
	b.Run("nodes", func(b *testing.B) {
		perObject(b, "B/node", nodes, func(in *Inventory, n int) {
			var node corev1.Node
			overTheWire(b, benchNode(n), &node)
			in.Put(FromNode(&node))
		})
	})
	b.Run("claims", func(b *testing.B) {
		perObject(b, "B/claim", nodes*8*4/5, func(in *Inventory, n int) {
			var claim resourcev1.ResourceClaim
			overTheWire(b, benchClaim(n), &claim)
			in.Put(FromClaim(&claim, testProfile))
		})
	})
	b.Run("fleet", func(b *testing.B) {
		for b.Loop() {
			before := live()
			in := fleetOf(b, nodes)
			b.ReportMetric(float64(live()-before)/(1<<20), "MiB")
			runtime.KeepAlive(in)
		}
	})
}
