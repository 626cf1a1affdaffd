package story

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpupool/gpupool-operator/test/cluster"
	"github.com/gpupool/gpupool-operator/test/fakedriver"
)

// instanceType is the label that cloud providers put on nodes.
const instanceType = "node.kubernetes.io/instance-type"

// pluginLabel is how NVIDIA's operator is told to keep its device plugin off a node.
const pluginLabel = "nvidia.com/gpu.deploy.device-plugin"

// member is a simulated node and what drivers publish there: shapes by driver.
type member struct {
	name, instanceType string
	serves             map[string]string
}

const (
	nvidia = "gpu.nvidia.com"
	amd    = "gpu.amd.com"
	hami   = "hami-core-gpu.project-hami.io"
	sriov  = "sriovnetwork.k8snetworkplumbingwg.io"
)

var fleet = []member{
	{"dgx-0", "p5.48xlarge", map[string]string{nvidia: "nvidia-h100-8"}},
	{"dgx-1", "p5.48xlarge", map[string]string{nvidia: "nvidia-h100-8", sriov: "sriov-rails-8"}},
	{"l4-0", "g2-standard-48", map[string]string{nvidia: "nvidia-l4-4"}},
	{"t4-0", "g4dn.12xlarge", map[string]string{nvidia: "nvidia-t4-4"}},
	{"mig-0", "a2-ultragpu-8g", map[string]string{nvidia: "nvidia-a100-mig-static"}},
	{"mi300x-0", "mi300x-8", map[string]string{amd: "amd-mi300x-8"}},
	{"hami-0", "h100-shared", map[string]string{hami: "hami-nvidia"}},
}

// Fleet adds the nodes of the story to a cluster, and drivers that somebody else has installed on them. It returns what
// stops the drivers.
func Fleet(ctx context.Context, c *cluster.Cluster) (stop func(), err error) {
	byNode := map[string]map[string]*fakedriver.Shape{} // by driver and node
	for _, m := range fleet {
		node := cluster.Node{Name: m.name, Labels: map[string]string{instanceType: m.instanceType, pluginLabel: "false"}}
		if err := c.AddNodes(ctx, node); err != nil {
			return nil, fmt.Errorf("adding node %s: %w", m.name, err)
		}
		for driver, name := range m.serves {
			shape, err := fakedriver.LoadShape(name)
			if err != nil {
				return nil, fmt.Errorf("loading shape %s: %w", name, err)
			}
			if byNode[driver] == nil {
				byNode[driver] = map[string]*fakedriver.Shape{}
			}
			byNode[driver][m.name] = shape
		}
	}
	var drivers []*fakedriver.Driver
	stop = func() {
		for _, driver := range drivers {
			driver.Stop()
		}
	}
	for name, shapes := range byNode {
		driver, err := fakedriver.Start(ctx, c.Config, fakedriver.Options{
			Name:  name,
			Mode:  fakedriver.Always,
			Shape: func(node *corev1.Node) *fakedriver.Shape { return shapes[node.Name] },
		})
		if err != nil {
			stop()
			return nil, fmt.Errorf("starting driver %s: %w", name, err)
		}
		drivers = append(drivers, driver)
	}
	return stop, nil
}
