package cluster

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
)

// useExisting returns the cluster of a kubeconfig file. Options that only a cluster of one's own can honour are
// refused: a suite that asks for a feature gate must not pass for having run without it.
func useExisting(path string, options Options) (*Cluster, error) {
	var refused []error
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"Kubernetes", options.Kubernetes != ""},
		{"Components", options.Components != nil},
		{"Dir", options.Dir != ""},
		{"FeatureGates", len(options.FeatureGates) > 0},
		{"RuntimeConfig", len(options.RuntimeConfig) > 0},
		{"AuditPolicy", options.AuditPolicy != ""},
	} {
		if option.set {
			refused = append(refused, fmt.Errorf("option %s is not available on the existing cluster of %s=%s",
				option.name, EnvKubeconfig, path))
		}
	}
	if len(refused) > 0 {
		return nil, errors.Join(refused...)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig that %s names: %w", EnvKubeconfig, err)
	}
	config.QPS = -1
	return &Cluster{Config: config, external: path}, nil
}
