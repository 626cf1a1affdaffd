package plan_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/plan"
	"github.com/gpupool/gpupool-operator/internal/selector"
)

// TestCatalogTypesCompile shows that every type of every driver makes a class.
func TestCatalogTypesCompile(t *testing.T) {
	known := drivers(t)
	for _, driver := range known.Drivers() {
		entry := known.Entry(driver)
		for _, deviceType := range slices.Sorted(maps.Keys(entry.Types)) {
			pool := &v1alpha1.GpuPool{Spec: v1alpha1.GpuPoolSpec{
				Driver:  v1alpha1.Driver{Name: driver},
				Devices: &v1alpha1.PoolDevices{Type: deviceType},
			}}
			if name := entry.Rules.DeviceClassNames[deviceType]; name != "" {
				pool.Spec.DeviceClass = &v1alpha1.PoolDeviceClass{Name: name}
			}
			if got := plan.ForPool(poolInputs(t, pool)); got.Refused != nil {
				t.Errorf("driver %s, type %s: %s", driver, deviceType, got.Refused.Message)
			}
		}
	}
}

func TestSharingWithoutTheFeature(t *testing.T) {
	tests := map[string]struct {
		sharing       v1alpha1.DeviceSharing
		wantSelectors int
		wantReason    string
	}{
		"where nothing is shared every device is exclusive": {sharing: v1alpha1.SharingExclusive, wantSelectors: 1},
		"and asking for shared ones is a question for the server's settings": {
			sharing: v1alpha1.SharingShared, wantReason: v1alpha1.ReasonFeatureUnavailable,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pool := &v1alpha1.GpuPool{Spec: v1alpha1.GpuPoolSpec{
				Driver:  v1alpha1.Driver{Name: "gpu.nvidia.com"},
				Devices: &v1alpha1.PoolDevices{DeviceSelector: v1alpha1.DeviceSelector{Sharing: tc.sharing}},
			}}
			in := poolInputs(t, pool)
			in.Server.SharedDevices = false
			got := plan.ForPool(in)
			switch {
			case tc.wantReason != "":
				if got.Refused == nil || got.Refused.Reason != tc.wantReason || !strings.Contains(got.Refused.Message, "DRAConsumableCapacity") {
					t.Errorf("got %+v, want it refused for %s, with the gate's name", got.Refused, tc.wantReason)
				}
			case got.Refused != nil || len(got.Class.Spec.Selectors) != tc.wantSelectors:
				t.Errorf("got %+v, want %d selectors", got, tc.wantSelectors)
			}
		})
	}
}

func TestExtendedResourceName(t *testing.T) {
	const name = "example.com/gpu"
	older, newer := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	pool := func(poolName string) *v1alpha1.GpuPool {
		p := &v1alpha1.GpuPool{Spec: v1alpha1.GpuPoolSpec{
			Driver:      v1alpha1.Driver{Name: "gpu.nvidia.com"},
			DeviceClass: &v1alpha1.PoolDeviceClass{ExtendedResourceName: name},
		}}
		p.Name = poolName
		return p
	}
	own := plan.ClassFacts{Name: "b.gpupool.dev", Created: older, ExtendedResourceName: name}
	tests := map[string]struct {
		classes []plan.ClassFacts
		rivals  []string
		// wantHolder is who has the name instead; empty if the pool gets it.
		wantHolder string
	}{
		"nobody else wants it":                               {},
		"other names are other people's business":            {classes: []plan.ClassFacts{{Name: "x", ExtendedResourceName: "example.com/other"}}},
		"a class holds it":                                   {classes: []plan.ClassFacts{{Name: "x", Created: newer, ExtendedResourceName: name}}, wantHolder: `DeviceClass "x"`},
		"the pool's own class holds it":                      {classes: []plan.ClassFacts{own}, rivals: []string{"a"}},
		"a newer class takes it, as Kubernetes sees it":      {classes: []plan.ClassFacts{own, {Name: "x", Created: newer, ExtendedResourceName: name}}, wantHolder: `DeviceClass "x"`},
		"an older class takes it, which Kubernetes does not": {classes: []plan.ClassFacts{own, {Name: "x", Created: older.Add(-1), ExtendedResourceName: name}}},
		"of equally old classes the first by name has it":    {classes: []plan.ClassFacts{own, {Name: "a.gpupool.dev", Created: older, ExtendedResourceName: name}}, wantHolder: `DeviceClass "a.gpupool.dev"`},
		"of pools that want it the first by name gets it":    {rivals: []string{"c"}},
		"and the others do not":                              {rivals: []string{"a", "c"}, wantHolder: `GpuPool "a"`},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			in := poolInputs(t, pool("b"))
			in.Classes = tc.classes
			for _, rival := range tc.rivals {
				in.Pools[rival] = plan.FactsOf(pool(rival))
			}
			got := plan.ForPool(in)
			if got.Refused != nil {
				t.Fatal(got.Refused.Message)
			}
			if tc.wantHolder == "" {
				if got.WithoutName != nil || got.Class.Spec.ExtendedResourceName == nil || *got.Class.Spec.ExtendedResourceName != name {
					t.Errorf("the class is published without the name: %+v", got.WithoutName)
				}
				return
			}
			if got.Class.Spec.ExtendedResourceName != nil {
				t.Error("the class is published with the name")
			}
			if got.WithoutName == nil || got.WithoutName.Reason != v1alpha1.ReasonExtendedResourceNameTaken ||
				!strings.HasPrefix(got.WithoutName.Message, tc.wantHolder) {
				t.Errorf("got %+v, want a message that begins with %s", got.WithoutName, tc.wantHolder)
			}
		})
	}
}

func TestTemplateTooLarge(t *testing.T) {
	objects := readObjects(t, "testdata/profiles/eight-of-a-pool.yaml")
	raw := v1alpha1.RawSelector{CEL: &v1alpha1.CELSelector{Expression: `device.driver == "` + strings.Repeat("x", 4000) + `"`}}
	request := objects.profile.Spec.Requests[0]
	objects.profile.Spec.Requests = nil
	for range 32 {
		exact := *request.Exactly
		exact.Devices = &v1alpha1.DeviceSelector{}
		for range 9 {
			exact.Devices.Selectors = append(exact.Devices.Selectors, raw)
		}
		objects.profile.Spec.Requests = append(objects.profile.Spec.Requests, v1alpha1.DeviceRequest{Name: "gpu", Exactly: &exact})
	}
	in := objects.profileInputs(t)
	in.Compiler = selector.NewCompiler(1)
	got := plan.ForProfile(in)
	if got.Refused == nil || got.Refused.Reason != v1alpha1.ReasonTemplateTooLarge || got.Template != nil || got.Shares != nil {
		t.Errorf("got %+v, want it refused as too large", got.Refused)
	}
}
