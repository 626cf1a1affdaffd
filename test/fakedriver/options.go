package fakedriver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

// Mode says on which nodes the driver is alive.
type Mode string

const (
	// WhileDriverPodReady is alive on nodes where a driver pod is Ready.
	WhileDriverPodReady Mode = "WhileDriverPodReady"
	// Always is alive on every node that it serves, like a driver that somebody else installed.
	Always Mode = "Always"
)

// defaultWithdrawAfter keeps tests short. A kubelet waits 30 s.
const defaultWithdrawAfter = 200 * time.Millisecond

// Options describe one driver.
type Options struct {
	// Name is the driver's name, for example gpu.nvidia.com. Required.
	Name string

	// Mode is where the driver is alive. Required.
	Mode Mode

	// Namespace and PodLabels select the driver's pods. Both are required in mode WhileDriverPodReady and mean nothing
	// in mode Always.
	Namespace string
	PodLabels labels.Selector

	// Nodes are the nodes that the driver serves. Unset: all nodes.
	Nodes labels.Selector

	// Shape chooses what is published for a node; nil means nothing. Required.
	Shape func(*corev1.Node) *Shape

	// WithdrawAfter is how long slices stay after the driver has died on their node. Unset: 200 ms.
	WithdrawAfter time.Duration

	// Identity returns a configuration for what the driver itself does: get its Node, list, watch, create, update and
	// delete its ResourceSlices, and get the claims that it prepares. The pod is the Ready driver pod on that node, nil
	// in mode Always. With the pod's own token these rights, and every policy on them, are put to the test. What the
	// kubelet does goes on under Start's configuration. Unset: that configuration serves for both.
	Identity func(ctx context.Context, driverPod *corev1.Pod) (*rest.Config, error)

	// Log gets what the driver does. Unset: nothing is logged.
	Log logr.Logger
}

// Everywhere serves the same shape on every node.
func Everywhere(shape *Shape) func(*corev1.Node) *Shape {
	return func(*corev1.Node) *Shape { return shape }
}

func (o Options) withDefaults() (Options, error) {
	var problems []error
	if o.Name == "" {
		problems = append(problems, errors.New("a driver needs a Name"))
	}
	if o.Shape == nil {
		problems = append(problems, errors.New("a driver needs a Shape"))
	}
	switch o.Mode {
	case WhileDriverPodReady:
		if o.Namespace == "" || o.PodLabels == nil {
			problems = append(problems, fmt.Errorf("mode %s needs Namespace and PodLabels", o.Mode))
		}
	case Always:
	default:
		problems = append(problems, fmt.Errorf("unknown mode %q: want %s or %s", o.Mode, WhileDriverPodReady, Always))
	}
	if o.Nodes == nil {
		o.Nodes = labels.Everything()
	}
	if o.WithdrawAfter == 0 {
		o.WithdrawAfter = defaultWithdrawAfter
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	return o, errors.Join(problems...)
}
