package inventory_test

import (
	"context"
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/types"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/gpupool/gpupool-operator/internal/inventory"
	"github.com/gpupool/gpupool-operator/internal/source"
)

const (
	nvidia      = "gpu.nvidia.com"
	nvidiaWhole = `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].?type.orValue("") == "gpu"`
	nvidiaMIG   = `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].?type.orValue("") == "mig"`
	nvidiaVFIO  = `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].?type.orValue("") == "vfio"`
)

var nvidiaCards = inventory.CardKeys{
	Self:   []string{"uuid", "resource.kubernetes.io/pciBusID"},
	Parent: []string{"parentUUID"},
}

// celMatcher selects devices by a CEL expression, as a DeviceClass does.
type celMatcher struct {
	compiled dracel.CompilationResult
}

func newCELMatcher(t *testing.T, expression string) inventory.DeviceMatcher {
	t.Helper()
	if expression == "" {
		return nil
	}
	compiler := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	compiled := compiler.CompileCELExpression(expression, dracel.Options{})
	if compiled.Error != nil {
		t.Fatalf("compiling %s: %v", expression, compiled.Error)
	}
	return celMatcher{compiled: compiled}
}

func (m celMatcher) Judge(driver string, device *inventory.Device) inventory.Verdict {
	matches, _, err := m.compiled.DeviceMatches(context.Background(), dracel.Device(device.CEL(driver)))
	if err != nil {
		return inventory.Verdict{Failure: err.Error()}
	}
	return inventory.Verdict{Matches: matches}
}

// readFiles makes an inventory of files of testdata.
func readFiles(t *testing.T, names ...string) *inventory.Inventory {
	t.Helper()
	folder := fstest.MapFS{}
	for _, name := range names {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		folder[name] = &fstest.MapFile{Data: text}
	}
	in := inventory.New()
	if err := source.ReadFolder(folder, in, "gpupool.dev/profile"); err != nil {
		t.Fatal(err)
	}
	return in
}

// nvidiaMemory selects devices with at least so much memory, and guards against devices that publish none.
func nvidiaMemory(atLeast string) string {
	return `device.driver == "gpu.nvidia.com" && "memory" in device.capacity["gpu.nvidia.com"] && ` +
		`device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("` + atLeast + `")) >= 0`
}

var (
	oneNode = inventory.NodeCounts{Selected: 1, Publishing: 1, WithDevices: 1}
	onePool = inventory.ResourcePoolCounts{Total: 1}
)

type poolCase struct {
	files   []string
	driver  string
	class   string
	devices string
	want    inventory.PoolCounts
}

// poolCases are what real clusters and drivers have shown. A case without a driver is of NVIDIA's, and has its card
// keys.
var poolCases = map[string]poolCase{
	"ADMIN-03: access for administration allocates nothing": {
		files: []string{"cases/ADMIN-03.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 4, Allocated: 1, Available: 3},
			Claims:  inventory.ClaimCounts{Allocated: 1, AdminAccess: 1},
		},
	},
	"CEL-01: a selector that fails on one device spares the others": {
		files: []string{"cases/CEL-01.yaml"}, class: nvidia,
		devices: `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`,
		want: inventory.PoolCounts{
			Nodes:          inventory.NodeCounts{Selected: 3, Publishing: 3, WithDevices: 2},
			ResourcePools:  inventory.ResourcePoolCounts{Total: 3},
			Devices:        &inventory.DeviceCounts{Total: 2, Available: 2},
			SelectorErrors: 1,
		},
	},
	"CLAIM-01: a claim that is being deleted still holds its device": {
		files: []string{"cases/CLAIM-01.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 4, Allocated: 2, Available: 2},
			Claims:  inventory.ClaimCounts{Allocated: 2},
		},
	},
	"CLAIM-05: an allocated device without a slice is orphaned": {
		files: []string{"cases/CLAIM-05.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes:    inventory.NodeCounts{Selected: 1},
			Devices:  &inventory.DeviceCounts{},
			Orphaned: 1,
			Claims:   inventory.ClaimCounts{Allocated: 1},
		},
	},
	"CLAIM-08: an allocated alternative counts for its own class": {
		files: []string{"cases/CLAIM-08.yaml"}, class: "mig.nvidia.com", devices: nvidiaMIG,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 2, Allocated: 1, Available: 1},
			Claims:  inventory.ClaimCounts{Allocated: 1, Pending: 1},
		},
	},
	"CLAIM-08: an alternative that was not taken counts while the claim is pending": {
		files: []string{"cases/CLAIM-08.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 1, Available: 1},
			Claims:  inventory.ClaimCounts{Pending: 1},
		},
	},
	"CLAIM-09: a claim for more devices than there are numbers is one pending claim": {
		files: []string{"cases/CLAIM-09.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Devices: &inventory.DeviceCounts{},
			Claims:  inventory.ClaimCounts{Pending: 1},
		},
	},
	"NODE-04: two sizes in one node are told apart by device": {
		files: []string{"cases/NODE-04.yaml"}, class: nvidia, devices: nvidiaMemory("32Gi"),
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 2, Available: 2},
		},
	},
	"NODE-07: effect None informs, an allocated tainted device is allocated": {
		files: []string{"cases/NODE-07.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{
				Total: 4, Allocated: 1, Available: 2, Unavailable: 1,
				UnavailableReasons: map[inventory.UnavailableReason]int{inventory.Tainted: 1},
			},
			Claims: inventory.ClaimCounts{Allocated: 1},
		},
	},
	"QUANT-02: an 80 GB card has no 80Gi": {
		files: []string{"cases/QUANT-02.yaml"}, class: nvidia, devices: nvidiaMemory("80Gi"),
		want: inventory.PoolCounts{
			Nodes:         inventory.NodeCounts{Selected: 7, Publishing: 7, WithDevices: 1},
			ResourcePools: inventory.ResourcePoolCounts{Total: 7},
			Devices:       &inventory.DeviceCounts{Total: 1, Available: 1},
		},
	},
	"QUANT-02: 81559Mi is the same in every notation": {
		files: []string{"cases/QUANT-02.yaml"}, class: nvidia, devices: nvidiaMemory("81559Mi"),
		want: inventory.PoolCounts{
			Nodes:         inventory.NodeCounts{Selected: 7, Publishing: 7, WithDevices: 4},
			ResourcePools: inventory.ResourcePoolCounts{Total: 7},
			Devices:       &inventory.DeviceCounts{Total: 4, Available: 4},
		},
	},
	"SHARE-01: a whole GPU is an alias of its allocated part": {
		files: []string{"cases/SHARE-01.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{
				Total: 1, Unavailable: 1,
				UnavailableReasons: map[inventory.UnavailableReason]int{inventory.Aliased: 1},
			},
		},
	},
	"SHARE-01: parts of one card lie beside each other": {
		files: []string{"cases/SHARE-01.yaml"}, class: "mig.nvidia.com", devices: nvidiaMIG,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 7, Allocated: 1, Available: 6},
			Claims:  inventory.ClaimCounts{Allocated: 1},
		},
	},
	"SHARE-01: a card and its parts have no sum": {
		files: []string{"cases/SHARE-01.yaml"}, class: nvidia,
		want: inventory.PoolCounts{Nodes: oneNode, ResourcePools: onePool},
	},
	"SHARE-06: a claim of two pods holds one device": {
		files: []string{"cases/SHARE-06.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 1, Allocated: 1},
			Claims:  inventory.ClaimCounts{Allocated: 1},
		},
	},
	"SHARE-08: a shared device counts once": {
		files: []string{"cases/SHARE-08.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes:         inventory.NodeCounts{Selected: 2, Publishing: 2, WithDevices: 2},
			ResourcePools: inventory.ResourcePoolCounts{Total: 2},
			Devices:       &inventory.DeviceCounts{Total: 2, Allocated: 2},
			Claims:        inventory.ClaimCounts{Allocated: 6},
		},
	},
	"SLICE-01: a generation that is half there has no devices": {
		files: []string{"cases/SLICE-01.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: inventory.NodeCounts{Selected: 1, Publishing: 1},
			ResourcePools: inventory.ResourcePoolCounts{
				Total: 1, Incomplete: 1,
				IncompleteReasons: map[inventory.IncompleteReason]int{inventory.FewerSlices: 1},
			},
			Devices: &inventory.DeviceCounts{},
		},
	},
	"SLICE-01: a generation that is all there makes the old one void": {
		files: []string{"cases/SLICE-01.yaml", "cases/SLICE-01b.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 8, Available: 8},
		},
	},
	"SLICE-03: as many slices as announced, no more and no fewer, all of one mind": {
		files: []string{"cases/SLICE-03.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: inventory.NodeCounts{Selected: 4, Publishing: 4, WithDevices: 1},
			ResourcePools: inventory.ResourcePoolCounts{
				Total: 4, Incomplete: 3,
				IncompleteReasons: map[inventory.IncompleteReason]int{
					inventory.FewerSlices: 1, inventory.MoreSlices: 1, inventory.CountsDisagree: 1,
				},
			},
			Devices: &inventory.DeviceCounts{Total: 4, Available: 4},
		},
	},
	"SLICE-05: a slice without devices is published": {
		files: []string{"cases/SLICE-05.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: inventory.NodeCounts{Selected: 1, Publishing: 1}, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{},
		},
	},
	"SLICE-07: pools of one name belong to their drivers, the allocated one": {
		files: []string{"cases/SLICE-07.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 1, Allocated: 1},
			Claims:  inventory.ClaimCounts{Allocated: 1},
		},
	},
	"SLICE-07: pools of one name belong to their drivers, the other one": {
		files: []string{"cases/SLICE-07.yaml"}, driver: "gpu.amd.com", class: "gpu.amd.com",
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 1, Available: 1},
		},
	},
	"SLICE-11: the slice of a node that was replaced adds nothing": {
		files: []string{"cases/SLICE-11.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 8, Available: 8},
		},
	},
	"SLICE-15: a whole GPU whose part is allocated is unavailable": {
		files: []string{"cases/SLICE-15.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{
				Total: 2, Available: 1, Unavailable: 1,
				UnavailableReasons: map[inventory.UnavailableReason]int{inventory.PartitionInUse: 1},
			},
		},
	},
	"SLICE-15: parts that fit together have a sum": {
		files: []string{"cases/SLICE-15.yaml"}, class: "mig.nvidia.com",
		devices: `device.attributes["gpu.nvidia.com"].?profile.orValue("") == "1g.10gb"`,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 14, Allocated: 1, Available: 13},
			Claims:  inventory.ClaimCounts{Allocated: 1},
		},
	},
	"SLICE-15: twenty entries of two GPUs have none": {
		files: []string{"cases/SLICE-15.yaml"}, class: nvidia,
		want: inventory.PoolCounts{Nodes: oneNode, ResourcePools: onePool},
	},
	"SLICE-16: a card that is passed through is not available as a GPU": {
		files: []string{"cases/SLICE-16.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{
				Total: 2, Available: 1, Unavailable: 1,
				UnavailableReasons: map[inventory.UnavailableReason]int{inventory.Aliased: 1},
			},
		},
	},
	"SLICE-16: and is allocated as what it is": {
		files: []string{"cases/SLICE-16.yaml"}, class: "vfio.gpu.nvidia.com", devices: nvidiaVFIO,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 2, Allocated: 1, Available: 1},
			Claims:  inventory.ClaimCounts{Allocated: 1},
		},
	},
	"SLICE-16: one card under two names has no sum": {
		files: []string{"cases/SLICE-16.yaml"}, class: nvidia,
		want: inventory.PoolCounts{Nodes: oneNode, ResourcePools: onePool},
	},
	"NVIDIA, static MIG: a tainted GPU is unavailable": {
		files: []string{"drivers/node.yaml", "drivers/nvidia-static.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{
				Total: 1, Unavailable: 1,
				UnavailableReasons: map[inventory.UnavailableReason]int{inventory.Tainted: 1},
			},
		},
	},
	"NVIDIA, dynamic MIG: whole GPUs": {
		files: []string{"drivers/node.yaml", "drivers/nvidia.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 2, Available: 2},
		},
	},
	"NVIDIA, passthrough: whole GPUs": {
		files: []string{"drivers/node.yaml", "drivers/nvidia-vfio.yaml"}, class: nvidia, devices: nvidiaWhole,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 1, Available: 1},
		},
	},
	"NVIDIA, shares: shareable GPUs": {
		files: []string{"drivers/node.yaml", "drivers/nvidia-shares.yaml"}, class: nvidia,
		devices: `device.driver == "gpu.nvidia.com" && device.allowMultipleAllocations`,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 2, Available: 2},
		},
	},
	"AMD: a GPU and a partition of another": {
		files: []string{"drivers/node.yaml", "drivers/amd.yaml"}, driver: "gpu.amd.com", class: "gpu.amd.com",
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 2, Available: 2},
		},
	},
	"TPU: all chips": {
		files: []string{"drivers/node.yaml", "drivers/google-tpu.yaml"}, driver: "tpu.google.com", class: "tpu.google.com",
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 2, Available: 2},
		},
	},
	"example driver, partitioned: halves": {
		files:  []string{"drivers/node.yaml", "drivers/example-gpu-partitioned.yaml"},
		driver: "gpu.example.com", class: "gpu.example.com",
		devices: `"partition" in device.attributes["gpu.example.com"]`,
		want: inventory.PoolCounts{
			Nodes: oneNode, ResourcePools: onePool,
			Devices: &inventory.DeviceCounts{Total: 4, Available: 4},
		},
	},
	"example driver, partitioned: halves and wholes have no sum": {
		files:  []string{"drivers/node.yaml", "drivers/example-gpu-partitioned.yaml"},
		driver: "gpu.example.com", class: "gpu.example.com",
		want: inventory.PoolCounts{Nodes: oneNode, ResourcePools: onePool},
	},
}

func TestCases(t *testing.T) {
	for name, test := range poolCases {
		t.Run(name, func(t *testing.T) {
			query := inventory.PoolQuery{Driver: test.driver, ClassName: test.class, Devices: newCELMatcher(t, test.devices)}
			if query.Driver == "" {
				query.Driver = nvidia
				query.CardKeys = nvidiaCards
			}
			got, known := readFiles(t, test.files...).PoolCounts(query)
			if !known {
				t.Fatal("the inventory is not synced")
			}
			got.Excluded = nil // another test's business
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

// A map is read in another order each time, so that a wrong form would win some of the time.
func TestQualifiedAttributeWinsEveryTime(t *testing.T) {
	in := readFiles(t, "cases/CEL-01.yaml")
	query := inventory.PoolQuery{
		Driver:    nvidia,
		ClassName: nvidia,
		Devices: newCELMatcher(t, `device.attributes["gpu.nvidia.com"].?uuid.orValue("") == `+
			`"GPU-2b22534c-3c8c-5706-bc79-c136f13e59d1"`),
	}
	for range 200 {
		if counts, _ := in.PoolCounts(query); counts.Devices == nil || counts.Devices.Total != 1 {
			t.Fatalf("counts of the device with both forms of uuid: %+v", counts.Devices)
		}
	}
}

func TestSliceOfAnOldGenerationGoes(t *testing.T) {
	in := readFiles(t, "cases/SLICE-01.yaml", "cases/SLICE-01b.yaml")
	query := inventory.PoolQuery{Driver: nvidia, ClassName: nvidia, Devices: newCELMatcher(t, nvidiaWhole)}
	before, _ := in.PoolCounts(query)
	change := in.Delete(inventory.Slices, types.NamespacedName{Name: "s01-old"})
	if !change.TouchesPool(nvidia, "") {
		t.Errorf("deleting a slice touches %+v, not its driver", change)
	}
	after, _ := in.PoolCounts(query)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("counts differ without the old slice (-before +after):\n%s", diff)
	}
}
