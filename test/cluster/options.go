package cluster

import (
	"fmt"
	"io"
	"slices"
)

// EnvKubeconfig names the environment variable that holds the path of a kubeconfig file. If it is set, Start uses that
// cluster instead of starting one.
const EnvKubeconfig = "TEST_KUBECONFIG"

// DefaultKubernetes is the Kubernetes minor version that Start runs unless told otherwise.
const DefaultKubernetes = "1.37"

// Component is a part of the cluster that a test can do without. etcd and kube-apiserver always run.
type Component string

const (
	// ControllerManager runs garbage collection, DaemonSets, Jobs, claims made from templates and node taints.
	ControllerManager Component = "kube-controller-manager"
	// Scheduler binds pods and allocates claims.
	Scheduler Component = "kube-scheduler"
	// Kwok runs the pods of simulated nodes.
	Kwok Component = "kwok"
)

// Options says what cluster Start makes. The zero value is a complete one of the default version.
type Options struct {
	// Log gets messages about building, starting and components that end unexpectedly, one a line. Unset: nothing is
	// said.
	Log io.Writer

	// Kubernetes is the minor version, for example "1.37"; it needs a folder builds/controlplane-<minor>. Unset:
	// DefaultKubernetes.
	Kubernetes string

	// Components run besides etcd and kube-apiserver. Unset (nil): all of them; empty: none.
	Components []Component

	// Dir holds data, certificates and logs, and stays after Stop. A folder of an earlier cluster is continued: its
	// objects are there again. Unset: a temporary folder that Stop removes.
	Dir string

	// Keep leaves a temporary folder where it is, for looking at logs after a failure.
	Keep bool

	// FeatureGates are set on kube-apiserver, kube-controller-manager and kube-scheduler alike.
	FeatureGates map[string]bool

	// RuntimeConfig turns API groups and versions on or off, for example "resource.k8s.io/v1alpha3": "true".
	RuntimeConfig map[string]string

	// AuditPolicy is the content of an audit policy file. If it is set, Cluster.AuditLog is the path of a log with one
	// JSON event a line. Events of the stage RequestReceived are in it before the request is handled, those of the
	// stage ResponseComplete a moment after the answer.
	AuditPolicy string
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = io.Discard
	}
	o.Log = &lockedWriter{writer: o.Log}
	if o.Kubernetes == "" {
		o.Kubernetes = DefaultKubernetes
	}
	if o.Components == nil {
		o.Components = []Component{ControllerManager, Scheduler, Kwok}
	}
	return o
}

func (o Options) validate() error {
	for _, component := range o.Components {
		switch component {
		case ControllerManager, Scheduler, Kwok:
		default:
			return fmt.Errorf("unknown component %q: want %s, %s or %s", component, ControllerManager, Scheduler, Kwok)
		}
	}
	return nil
}

func (o Options) runs(component Component) bool { return slices.Contains(o.Components, component) }
