// Command localkube runs a local Kubernetes cluster with simulated nodes and drivers until Ctrl-C.
//
//	go run ./test/cluster/localkube --nodes 3 --node-label pool=h100 --driver gpu.nvidia.com=nvidia-h100-8
//
// Tests use it instead of a cluster of their own if TEST_KUBECONFIG names the kubeconfig that it prints.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gpupool/gpupool-operator/test/cluster"
	"github.com/gpupool/gpupool-operator/test/cluster/binaries"
	"github.com/gpupool/gpupool-operator/test/fakedriver"
)

type settings struct {
	options   cluster.Options
	buildOnly bool
	nodes     int
	labels    map[string]string
	// drivers are shapes by driver name.
	drivers map[string]*fakedriver.Shape
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, parse())
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parse() settings {
	s := settings{
		options: cluster.Options{Log: os.Stderr, FeatureGates: map[string]bool{}, RuntimeConfig: map[string]string{}},
		labels:  map[string]string{},
		drivers: map[string]*fakedriver.Shape{},
	}
	flag.BoolVar(&s.buildOnly, "build-only", false, "build the cluster's programs and start nothing")
	flag.IntVar(&s.nodes, "nodes", 1, "number of simulated nodes, named node-1, node-2 and so on")
	flag.StringVar(&s.options.Kubernetes, "kubernetes", cluster.DefaultKubernetes, "Kubernetes minor version")
	flag.StringVar(&s.options.Dir, "dir", "", "folder for data and logs that stays and is continued next time "+
		"(default: a temporary one)")
	pairs("node-label", "label=value on every node", func(key, value string) error {
		s.labels[key] = value
		return nil
	})
	pairs("feature-gate", "gate=true or gate=false", func(key, value string) (err error) {
		s.options.FeatureGates[key], err = strconv.ParseBool(value)
		return err
	})
	pairs("runtime-config", "group/version=true or =false", func(key, value string) error {
		s.options.RuntimeConfig[key] = value
		return nil
	})
	pairs("driver", "name=shape: a simulated driver on every node; the shape is a file, or one of "+
		strings.Join(fakedriver.BuiltinShapes(), ", "), func(key, value string) (err error) {
		s.drivers[key], err = fakedriver.LoadShape(value)
		return err
	})
	flag.Parse()
	return s
}

// pairs declares a flag that may be given several times, each time with key=value.
func pairs(name, usage string, set func(key, value string) error) {
	flag.Func(name, usage, func(text string) error {
		key, value, found := strings.Cut(text, "=")
		if !found || key == "" {
			return fmt.Errorf("want key=value, got %q", text)
		}
		return set(key, value)
	})
}

func run(ctx context.Context, s settings) error {
	if s.buildOnly {
		return build(ctx, s.options)
	}
	if path := os.Getenv(cluster.EnvKubeconfig); path != "" {
		return fmt.Errorf("%s=%s names a cluster that runs already; unset it to start another", cluster.EnvKubeconfig, path)
	}
	started := time.Now()
	c, err := cluster.Start(ctx, s.options)
	if err != nil {
		return err
	}
	defer func() { _ = c.Stop() }()
	if err := populate(ctx, c, s); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "The cluster is ready after %s. Logs are in %s. Ctrl-C ends it.\n\n",
		time.Since(started).Round(100*time.Millisecond), c.Dir())
	fmt.Printf("export KUBECONFIG=%s\n", c.Kubeconfig())
	fmt.Printf("export %s=%s\n", cluster.EnvKubeconfig, c.Kubeconfig())
	<-ctx.Done()
	return nil
}

func build(ctx context.Context, options cluster.Options) error {
	controlPlane, err := binaries.ControlPlane(options.Kubernetes)
	if err != nil {
		return err
	}
	kwok, err := binaries.Kwok()
	if err != nil {
		return err
	}
	for _, set := range []binaries.Set{controlPlane, kwok} {
		dir, err := binaries.Builder{Log: options.Log}.Build(ctx, set)
		if err != nil {
			return err
		}
		fmt.Println(dir)
	}
	return nil
}

// populate adds the nodes and starts the drivers, which end with ctx.
func populate(ctx context.Context, c *cluster.Cluster, s settings) error {
	nodes := make([]cluster.Node, s.nodes)
	for i := range nodes {
		nodes[i] = cluster.Node{Name: fmt.Sprintf("node-%d", i+1), Labels: s.labels}
	}
	if err := c.AddNodes(ctx, nodes...); err != nil {
		return err
	}
	for name, shape := range s.drivers {
		_, err := fakedriver.Start(ctx, c.Config, fakedriver.Options{
			Name: name, Mode: fakedriver.Always, Shape: fakedriver.Everywhere(shape),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
