package fakedriver

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// pool is one pool of the driver: that of a node, under the node's name, or a shared one, under the pool's name. Its
// fields say what was asked for beyond the shape, and what has been published.
type pool struct {
	// mu is held while the pool is changed and written, so that each pool has one writer at a time.
	mu   sync.Mutex
	name string

	// shape replaces the driver's own choice if set.
	shape *Shape
	// absent devices are left out.
	absent sets.Set[string]
	// taints are added to the shape's, by device.
	taints map[string][]resourcev1.DeviceTaint
	// duplicates are published a second time, in a slice of their own.
	duplicates []string
	// announced replaces the number of slices that every slice names, if it is not 0.
	announced int64
	// withheld pools have no slices, although the driver is alive.
	withheld bool
	// held pools are not written until Finish.
	held bool
	// pending is the generation that Finish completes, or 0.
	pending int64

	// written is what was last sent, by slice name, and the version that the server gave it.
	written map[string]writtenSlice
	// deadSince is when the driver was first seen not alive. Zero while it is alive.
	deadSince time.Time
	// failure is why the last attempt to write failed.
	failure error
}

type writtenSlice struct {
	spec    resourcev1.ResourceSliceSpec
	version string
}

func newPool(name string) *pool {
	return &pool{
		name:    name,
		absent:  sets.New[string](),
		taints:  map[string][]resourcev1.DeviceTaint{},
		written: map[string]writtenSlice{},
	}
}

// wanted is what the pool should publish: the shape with all changes, but for the generation.
func (p *pool) wanted(shape *Shape, driver, node string) ([]resourcev1.ResourceSlice, error) {
	if p.shape != nil {
		shape = p.shape
	}
	rendered, err := shape.Render(driver, node)
	if err != nil {
		return nil, err
	}
	known := map[string]resourcev1.Device{}
	for i := range rendered {
		devices := rendered[i].Spec.Devices[:0]
		for _, device := range rendered[i].Spec.Devices {
			device.Taints = append(device.Taints, p.taints[device.Name]...)
			known[device.Name] = device
			if !p.absent.Has(device.Name) {
				devices = append(devices, device)
			}
		}
		rendered[i].Spec.Devices = devices
	}
	if len(p.duplicates) > 0 {
		extra := rendered[len(rendered)-1].DeepCopy()
		extra.Spec.SharedCounters, extra.Spec.Devices = nil, nil
		for _, name := range p.duplicates {
			extra.Spec.Devices = append(extra.Spec.Devices, known[name])
		}
		rendered = append(rendered, *extra)
	}
	for i := range rendered {
		slice := &rendered[i]
		slice.Name = sliceName(i, driver, slice.Spec.Pool.Name)
		slice.Spec.Pool.ResourceSliceCount = int64(len(rendered))
		if p.announced != 0 {
			slice.Spec.Pool.ResourceSliceCount = p.announced
		}
	}
	return rendered, nil
}

// has reports an error if the pool's shape has no such device.
func (p *pool) has(shape *Shape, driver, node, device string) error {
	if p.shape != nil {
		shape = p.shape
	}
	rendered, err := shape.Render(driver, node)
	if err != nil {
		return err
	}
	for _, slice := range rendered {
		if slices.ContainsFunc(slice.Spec.Devices, func(d resourcev1.Device) bool { return d.Name == device }) {
			return nil
		}
	}
	return fmt.Errorf("pool %s has no device %s", p.name, device)
}

// sliceName is like the name that the library for drivers makes, without its random end: the scheduler takes slices in
// the order of their names.
func sliceName(index int, driver, pool string) string {
	return fmt.Sprintf("%d-%s-%s", index, driver, strings.ReplaceAll(pool, "/", "-"))
}

// sameTaint reports whether two taints are one: the API identifies them by key and effect.
func sameTaint(key string, effect resourcev1.DeviceTaintEffect) func(resourcev1.DeviceTaint) bool {
	return func(taint resourcev1.DeviceTaint) bool { return taint.Key == key && taint.Effect == effect }
}

// nodeOf is the node that a slice belongs to, or empty.
func nodeOf(slice *resourcev1.ResourceSlice) string { return ptr.Deref(slice.Spec.NodeName, "") }
