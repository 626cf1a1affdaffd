package plan_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	resourcev1 "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"sigs.k8s.io/yaml"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/inventory"
	"github.com/gpupool/gpupool-operator/internal/plan"
	"github.com/gpupool/gpupool-operator/internal/selector"
	"github.com/gpupool/gpupool-operator/test/fakedriver"
)

// fixtures are what real drivers publish, shape by shape.
var fixtures = map[string][]string{
	"gpu.nvidia.com":                       {"nvidia", "nvidia-static", "nvidia-vfio", "nvidia-shares"},
	"gpu.amd.com":                          {"amd"},
	"gpu.intel.com":                        {"intel-gpu"},
	"gpu.example.com":                      {"example-gpu", "example-gpu-partitioned", "example-gpu-sharing"},
	"tpu.google.com":                       {"google-tpu"},
	"hami-core-gpu.project-hami.io":        {"hami-nvidia"},
	"sriovnetwork.k8snetworkplumbingwg.io": {"sriov"},
}

// published are the devices of a driver's fixtures, and of its file of further devices, by shape and name.
func published(t *testing.T, driver string) map[string]resourcev1.Device {
	t.Helper()
	devices := map[string]resourcev1.Device{}
	for _, name := range fixtures[driver] {
		shape, err := fakedriver.LoadShape(name)
		if err != nil {
			t.Fatal(err)
		}
		slices, err := shape.Render(driver, "node")
		if err != nil {
			t.Fatal(err)
		}
		for _, slice := range slices {
			for _, device := range slice.Spec.Devices {
				devices[name+"/"+device.Name] = device
			}
		}
	}
	content, err := os.ReadFile("testdata/devices/" + driver + ".yaml")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var further []resourcev1.Device
	if err := yaml.UnmarshalStrict(content, &further); err != nil {
		t.Fatal(err)
	}
	for _, device := range further {
		devices[device.Name] = device
	}
	return devices
}

// judge plans a pool and judges a device as the inventory does.
func judge(t *testing.T, pool plan.Pool, driver string, device resourcev1.Device) inventory.Verdict {
	t.Helper()
	slice := inventory.FromSlice(&resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		Driver: driver, NodeName: new("node"), Pool: resourcev1.ResourcePool{Name: "node", ResourceSliceCount: 1},
		Devices: []resourcev1.Device{device},
	}})
	return pool.Query.Devices.Judge(driver, &slice.Devices[0])
}

func planDevices(t *testing.T, driver, devices string) plan.Pool {
	t.Helper()
	pool := &v1alpha1.GpuPool{Spec: v1alpha1.GpuPoolSpec{
		Driver: v1alpha1.Driver{Name: driver}, Devices: &v1alpha1.PoolDevices{},
		DeviceClass: &v1alpha1.PoolDeviceClass{Name: "gpu-vfio.intel.com"},
	}}
	if err := yaml.UnmarshalStrict([]byte(devices), pool.Spec.Devices); err != nil {
		t.Fatal(err)
	}
	planned := plan.ForPool(poolInputs(t, pool))
	if planned.Refused != nil {
		t.Fatalf("%s, %s: %s", driver, devices, planned.Refused.Message)
	}
	return planned
}

// TestSelections selects devices of each driver by each neutral field that its catalogue entry has.
func TestSelections(t *testing.T) {
	content, err := os.ReadFile("testdata/devices/selections.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]map[string][]string{}
	if err := yaml.UnmarshalStrict(content, &tables); err != nil {
		t.Fatal(err)
	}
	for driver, selections := range tables {
		devices := published(t, driver)
		for selection, want := range selections {
			t.Run(driver+" "+selection, func(t *testing.T) {
				pool := planDevices(t, driver, selection)
				var got []string
				for name, device := range devices {
					verdict := judge(t, pool, driver, device)
					if verdict.Failure != "" {
						t.Errorf("it fails on %s: %s", name, verdict.Failure)
					}
					if verdict.Matches {
						got = append(got, name)
					}
				}
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("selected devices (-want +got):\n%s", diff)
				}
			})
		}
	}
	for _, driver := range drivers(t).Drivers() {
		if len(tables[driver]) == 0 {
			t.Errorf("testdata/devices/selections.yaml has nothing for driver %s", driver)
		}
	}
}

// everyField selects by everything that a driver's entry knows.
func everyField(t *testing.T, driver string) plan.Pool {
	t.Helper()
	known := drivers(t).Entry(driver).Properties
	fields := []string{"sharing: Exclusive", "attributes: [{name: type, operator: NotIn, values: [x]}]", "capacity: [{name: memory, min: 0}]"}
	for field, has := range map[string]bool{
		"models: [x, 'y*']":                           known.Model != nil,
		"architectures: [x, 'y*']":                    known.Architecture != nil,
		"partitionProfiles: ['1g.*', cpx_nps4]":       known.PartitionProfile != nil,
		"memory: {min: 1Mi, max: 1Ti}":                known.Memory != nil,
		"cudaComputeCapability: {min: '8', max: '9'}": known.CUDAComputeCapability != nil,
		"gpuDriverVersion: {min: '1', max: '600'}":    known.GPUDriverVersion != nil,
	} {
		if has {
			fields = append(fields, field)
		}
	}
	return planDevices(t, driver, "{"+strings.Join(fields, ", ")+"}")
}

// TestNoDeviceMakesASelectorFail drops one name at a time from each device of each driver, and changes the type of one at
// a time, and evaluates every selector that is generated for any driver. A selector that fails on one device makes the
// scheduler refuse every pod of its class.
func TestNoDeviceMakesASelectorFail(t *testing.T) {
	compiler := selector.NewCompiler(256)
	expressions := map[string]bool{}
	for _, driver := range drivers(t).Drivers() {
		for _, s := range everyField(t, driver).Class.Spec.Selectors {
			expressions[*s.CEL.Expression] = true
		}
	}
	evaluated := 0
	for driver := range fixtures {
		for name, device := range published(t, driver) {
			for what, mutant := range mutants(device) {
				for expression := range expressions {
					compiled, err := compiler.Compile(expression)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := compiled.Matches(dracel.Device{
						Driver: driver, AllowMultipleAllocations: mutant.AllowMultipleAllocations,
						Attributes: mutant.Attributes, Capacity: mutant.Capacity,
					}); err != nil {
						t.Errorf("%s %s: %s: %v", name, what, expression, err)
					}
					evaluated++
				}
			}
		}
	}
	t.Logf("%d evaluations of %d selectors", evaluated, len(expressions))
	if evaluated < 10_000 {
		t.Error("too few to show anything")
	}
}

// mutants are the device as it is, without each of its names, and with each attribute as every other type.
func mutants(device resourcev1.Device) map[string]resourcev1.Device {
	all := map[string]resourcev1.Device{"as it is": device}
	for name := range device.Capacity {
		mutant := device.DeepCopy()
		delete(mutant.Capacity, name)
		all["without capacity "+string(name)] = *mutant
	}
	for name := range device.Attributes {
		mutant := device.DeepCopy()
		delete(mutant.Attributes, name)
		all["without "+string(name)] = *mutant
		for kind, value := range map[string]resourcev1.DeviceAttribute{
			"int": {IntValue: new(int64(1))}, "bool": {BoolValue: new(true)}, "string": {StringValue: new("x")},
			"version": {VersionValue: new("1.2.3")}, "ints": {IntValues: []int64{1}}, "strings": {StringValues: []string{"x"}},
		} {
			mutant := device.DeepCopy()
			mutant.Attributes[name] = value
			all["with "+string(name)+" as "+kind] = *mutant
		}
	}
	return all
}

func TestExplain(t *testing.T) {
	tests := map[string]struct {
		driver, devices string
		want            []plan.Exclusion
	}{
		"a nominal size keeps out the cards that it is meant for, and the nearest value is said": {
			driver: "gpu.nvidia.com", devices: `{memory: {min: 80Gi}}`,
			want: []plan.Exclusion{
				{Field: "devices.type", Devices: 10, Detail: `type is "mig"; type is not published`},
				{Field: "devices.memory", Devices: 9, Detail: "81559Mi is below 80Gi; memory is not published"},
			},
		},
		"a card that is too large": {
			driver: "gpu.amd.com", devices: `{type: Any, memory: {max: 20Gi}}`,
			want: []plan.Exclusion{{Field: "devices.memory", Devices: 6, Detail: "24Gi is above 20Gi; memory is not published"}},
		},
		"versions compare by number": {
			driver: "gpu.nvidia.com", devices: `{cudaComputeCapability: {min: "12.2"}}`,
			want: []plan.Exclusion{
				{Field: "devices.type", Devices: 10, Detail: `type is "mig"; type is not published`},
				{Field: "devices.cudaComputeCapability", Devices: 9, Detail: "12.1.0 is below 12.2"},
			},
		},
		"the model that comes nearest, and fields in the order in which they are tested": {
			driver: "gpu.nvidia.com", devices: `{models: ["NVIDIA H200*"], gpuDriverVersion: {min: "600"}}`,
			want: []plan.Exclusion{
				{Field: "devices.type", Devices: 10, Detail: `type is "mig"; type is not published`},
				{Field: "devices.models", Devices: 9, Detail: `productName is "NVIDIA H100 80GB HBM3"`},
			},
		},
		"missing keys are told apart from wrong values, and since when drivers publish them": {
			driver: "tpu.google.com", devices: `{models: [tpu-v7x-slice]}`,
			want: []plan.Exclusion{{
				Field: "devices.models", Devices: 3,
				Detail: `accelerator is "tpu-v6e-slice"; accelerator is not published; drivers do since version 0.2.0`,
			}},
		},
		"single attributes and capacities by their index": {
			driver: "gpu.example.com",
			devices: `{type: Any, attributes: [{name: index, type: Int, operator: In, values: ["0"]}, {name: numa, operator: Exists}],
			           capacity: [{name: memory, min: 1}]}`,
			want: []plan.Exclusion{
				{Field: "devices.attributes[0]", Devices: 5, Detail: `index is "1"`},
				{Field: "devices.attributes[1]", Devices: 5, Detail: "numa is not published"},
			},
		},
		"how devices are shared": {
			driver: "hami-core-gpu.project-hami.io", devices: `{sharing: Exclusive}`,
			want: []plan.Exclusion{{Field: "devices.sharing", Devices: 2, Detail: "devices are shared"}},
		},
		"an expression that fails, and one that does not match": {
			driver: "gpu.intel.com", devices: `{type: Any, selectors: [{cel: {expression: 'device.attributes["gpu.intel.com"].sriov'}}]}`,
			want: []plan.Exclusion{{
				Field: "devices.selectors[0]", Devices: 3,
				Detail: "the expression fails: no such key: sriov. consider using CEL optional chaining " +
					"(.? followed by orValue()) or guarding the check with has() for optional fields",
			}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pool := planDevices(t, tc.driver, tc.devices)
			counts := map[inventory.Verdict]int{}
			for _, device := range published(t, tc.driver) {
				if verdict := judge(t, pool, tc.driver, device); !verdict.Matches {
					counts[verdict]++
				}
			}
			var excluded []inventory.Exclusion
			for verdict, devices := range counts {
				excluded = append(excluded, inventory.Exclusion{
					Selector: verdict.Selector, Value: verdict.Value, Failure: verdict.Failure, Devices: devices,
				})
			}
			if diff := cmp.Diff(tc.want, pool.Explain(excluded)); diff != "" {
				t.Errorf("explanation (-want +got):\n%s", diff)
			}
		})
	}
}
