package fakedriver

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	resourcev1 "k8s.io/api/resource/v1"
)

// content is what a test of wanted slices looks at: device names by slice name, and what each slice announces.
type content struct {
	Devices   map[string][]string
	Announced int64
	Taints    []string
}

func contentOf(slices []resourcev1.ResourceSlice) content {
	c := content{Devices: map[string][]string{}}
	for _, slice := range slices {
		names := []string{}
		for _, device := range slice.Spec.Devices {
			names = append(names, device.Name)
			for _, taint := range device.Taints {
				c.Taints = append(c.Taints, device.Name+" "+taint.Key)
			}
		}
		c.Devices[slice.Name] = names
		c.Announced = slice.Spec.Pool.ResourceSliceCount
	}
	return c
}

func TestWanted(t *testing.T) {
	other := mustParse(t, sharedSlice)
	for name, test := range map[string]struct {
		change func(*pool)
		want   content
	}{
		"the shape as it is": {
			change: func(*pool) {},
			want: content{Announced: 2, Devices: map[string][]string{
				"0-gpu.example.com-node-7": {}, "1-gpu.example.com-node-7": {"gpu-0", "gpu-1"},
			}},
		},
		"a withdrawn device is left out and its slice stays": {
			change: func(p *pool) { p.absent.Insert("gpu-0") },
			want: content{Announced: 2, Devices: map[string][]string{
				"0-gpu.example.com-node-7": {}, "1-gpu.example.com-node-7": {"gpu-1"},
			}},
		},
		"a duplicate has a slice of its own, which is announced": {
			change: func(p *pool) { p.duplicates = []string{"gpu-1"} },
			want: content{Announced: 3, Devices: map[string][]string{
				"0-gpu.example.com-node-7": {}, "1-gpu.example.com-node-7": {"gpu-0", "gpu-1"},
				"2-gpu.example.com-node-7": {"gpu-1"},
			}},
		},
		"a wrong number is announced": {
			change: func(p *pool) { p.announced = 5 },
			want: content{Announced: 5, Devices: map[string][]string{
				"0-gpu.example.com-node-7": {}, "1-gpu.example.com-node-7": {"gpu-0", "gpu-1"},
			}},
		},
		"a taint is on its device only": {
			change: func(p *pool) { p.taints["gpu-1"] = []resourcev1.DeviceTaint{{Key: "example.com/broken"}} },
			want: content{Announced: 2, Taints: []string{"gpu-1 example.com/broken"}, Devices: map[string][]string{
				"0-gpu.example.com-node-7": {}, "1-gpu.example.com-node-7": {"gpu-0", "gpu-1"},
			}},
		},
		"another shape": {
			change: func(p *pool) { p.shape = other },
			want: content{Announced: 1, Devices: map[string][]string{
				"0-gpu.example.com-fabric": {"port-0", "port-1"},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool("node-7")
			test.change(p)
			wanted, err := p.wanted(mustParse(t, twoSlices), "gpu.example.com", "node-7")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, contentOf(wanted)); diff != "" {
				t.Errorf("wanted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGeneration(t *testing.T) {
	rendered := func() []resourcev1.ResourceSlice {
		wanted, err := newPool("node-7").wanted(mustParse(t, twoSlices), "gpu.example.com", "node-7")
		if err != nil {
			t.Fatal(err)
		}
		return wanted
	}
	for name, test := range map[string]struct {
		// live are how many slices the server has, all in generation 4.
		live int
		// changed are how many of them differ from what was written.
		changed int
		extent  extent
		pending int64
		want    int64
	}{
		"a new pool starts with 1":                {extent: writeAll, want: 1},
		"one changed slice keeps the generation":  {live: 2, changed: 1, extent: writeAll, want: 4},
		"two changed slices raise it":             {live: 2, changed: 2, extent: writeAll, want: 5},
		"a new slice raises it":                   {live: 1, extent: writeAll, want: 5},
		"a bump raises it":                        {live: 2, extent: extent{bump: true, first: all}, want: 5},
		"what was begun is finished as it is":     {live: 2, changed: 1, extent: writeAll, pending: 4, want: 4},
		"nothing to do leaves it as it is":        {live: 2, extent: writeAll, want: 4},
		"a pending generation wins over creation": {live: 1, extent: writeAll, pending: 4, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool("node-7")
			p.pending = test.pending
			var live []resourcev1.ResourceSlice
			for i, slice := range rendered()[:test.live] {
				slice.Spec.Pool.Generation = 4
				slice.ResourceVersion = "1"
				p.written[slice.Name] = writtenSlice{spec: slice.Spec, version: "1"}
				if i < test.changed {
					slice.ResourceVersion = "2"
				}
				live = append(live, slice)
			}
			wanted := rendered()
			p.setGeneration(wanted, live, test.extent)
			for _, slice := range wanted {
				if got := slice.Spec.Pool.Generation; got != test.want {
					t.Errorf("generation %d, want %d", got, test.want)
				}
			}
		})
	}
}
