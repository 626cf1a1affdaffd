package inventory

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestTakesWholeDevice(t *testing.T) {
	capacity := func(name, value, byDefault string) func(*resourcev1.Device) {
		return func(d *resourcev1.Device) {
			c := resourcev1.DeviceCapacity{Value: resource.MustParse(value)}
			if byDefault != "" {
				c.RequestPolicy = &resourcev1.CapacityRequestPolicy{Default: new(resource.MustParse(byDefault))}
			}
			if d.Capacity == nil {
				d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}
			}
			d.Capacity[resourcev1.QualifiedName(name)] = c
		}
	}
	hami := aDevice("gpu", shareable, attr("model", "H100"), capacity("memory", "80Gi", "80Gi"), capacity("cores", "100", "100"))
	tests := map[string]struct {
		device resourcev1.Device
		slice  []func(*resourcev1.ResourceSlice)
		query  ShareQuery
		want   bool
	}{
		"nothing requested takes all":              {device: hami, want: true},
		"one of two requested takes the other":     {device: hami, query: ShareQuery{Requested: []string{"memory"}}, want: true},
		"both requested":                           {device: hami, query: ShareQuery{Requested: []string{"memory", "cores"}}},
		"the qualified name is another name":       {device: hami, query: ShareQuery{Requested: []string{testDriver + "/memory", "cores"}}, want: true},
		"a device that the class leaves out":       {device: hami, query: ShareQuery{Devices: modelMatcher("A100")}},
		"a device that the request leaves out":     {device: hami, query: ShareQuery{Devices: modelMatcher("H100"), Narrowing: modelMatcher("A100")}},
		"a device that nobody shares":              {device: aDevice("gpu", capacity("memory", "80Gi", ""))},
		"no policy is all of it":                   {device: aDevice("gpu", shareable, capacity("memory", "80Gi", "")), want: true},
		"a default of nothing":                     {device: aDevice("gpu", shareable, capacity("memory", "80Gi", "0"))},
		"a default of a part":                      {device: aDevice("gpu", shareable, capacity("shares", "4", "1"))},
		"a capacity of nothing":                    {device: aDevice("gpu", shareable, capacity("memory", "0", ""))},
		"no capacity at all":                       {device: aDevice("gpu", shareable)},
		"an incomplete resource pool says nothing": {device: hami, slice: []func(*resourcev1.ResourceSlice){pool("a", 1, 2)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.query.Driver = testDriver
			w := world{slices: []*Slice{aSlice("a", append(tc.slice, devices(tc.device))...)}}
			if got := takesWholeDevice(w, tc.query); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	if _, known := New().TakesWholeDevice(ShareQuery{}); known {
		t.Error("an inventory that is not synced knows nothing")
	}
}
