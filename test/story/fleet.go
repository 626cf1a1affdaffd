package story

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/gpupool/gpupool-operator/test/cluster"
	"github.com/gpupool/gpupool-operator/test/fakedriver"
)

// instanceType is the label that cloud providers put on nodes.
const instanceType = "node.kubernetes.io/instance-type"

// fleet are the simulated nodes: their name, instance type, driver and what the driver publishes there.
var fleet = []struct{ name, instanceType, driver, shape string }{
	{"dgx-0", "p5.48xlarge", "gpu.nvidia.com", "nvidia-h100-8"},
	{"dgx-1", "p5.48xlarge", "gpu.nvidia.com", "nvidia-h100-8"},
	{"l4-0", "g2-standard-48", "gpu.nvidia.com", "nvidia-l4-4"},
	{"l4-1", "g2-standard-48", "gpu.nvidia.com", "nvidia-l4-4"},
	{"t4-0", "g4dn.12xlarge", "gpu.nvidia.com", "nvidia-t4-4"},
	{"lab-0", "workstation", "gpu.example.com", "example-gpu-4"},
}

// Fleet adds the nodes of the story to a cluster, and drivers that somebody else has installed on them. It returns what
// stops the drivers.
func Fleet(ctx context.Context, c *cluster.Cluster, config *rest.Config) (stop func(), err error) {
	shapes := map[string]map[string]*fakedriver.Shape{} // by driver and instance type
	for _, member := range fleet {
		node := cluster.Node{Name: member.name, Labels: map[string]string{instanceType: member.instanceType}}
		if err := c.AddNodes(ctx, node); err != nil {
			return nil, fmt.Errorf("adding node %s: %w", member.name, err)
		}
		shape, err := fakedriver.LoadShape(member.shape)
		if err != nil {
			return nil, fmt.Errorf("loading shape %s: %w", member.shape, err)
		}
		if shapes[member.driver] == nil {
			shapes[member.driver] = map[string]*fakedriver.Shape{}
		}
		shapes[member.driver][member.instanceType] = shape
	}
	var drivers []*fakedriver.Driver
	stop = func() {
		for _, driver := range drivers {
			driver.Stop()
		}
	}
	for name, byType := range shapes {
		driver, err := fakedriver.Start(ctx, config, fakedriver.Options{
			Name:  name,
			Mode:  fakedriver.Always,
			Shape: func(node *corev1.Node) *fakedriver.Shape { return byType[node.Labels[instanceType]] },
		})
		if err != nil {
			stop()
			return nil, fmt.Errorf("starting driver %s: %w", name, err)
		}
		drivers = append(drivers, driver)
	}
	return stop, nil
}
