package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const (
	// nodeAnnotation marks the nodes that kwok plays; it leaves others alone.
	nodeAnnotation      = "kwok.x-k8s.io/node"
	nodeAnnotationValue = "fake"

	// nodeWriters bounds how many nodes are made at once.
	nodeWriters = 16
	// nodesReadyEvery and nodesReadyWithin pace the wait for the control plane to accept new nodes.
	nodesReadyEvery  = 100 * time.Millisecond
	nodesReadyWithin = time.Minute
)

// Node is a simulated node.
type Node struct {
	// Name is the node's name. Required.
	Name string
	// Labels are added to the hostname, os and arch labels that a kubelet sets.
	Labels map[string]string
	// Taints are the node's own.
	Taints []corev1.Taint
	// Allocatable is also the node's capacity. What is not set: cpu 64, memory 512Gi, pods 110.
	Allocatable corev1.ResourceList
}

// AddNodes makes simulated nodes and returns when the scheduler may use them.
//
// They are Ready from the start, have no heartbeat and cost no request afterwards. Nothing ever resets a node, so a
// test changes one through the API as it likes: spec.unschedulable, spec.taints, labels, or status.conditions by the
// status subresource. With Ready set to False or Unknown the control plane taints the node as it would a real one, and
// with True it takes the taint back.
func (c *Cluster) AddNodes(ctx context.Context, nodes ...Node) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("making a client for nodes: %w", err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking for the server's version: %w", err)
	}
	writers, groupCtx := errgroup.WithContext(ctx)
	writers.SetLimit(nodeWriters)
	names := sets.New[string]()
	for _, node := range nodes {
		names.Insert(node.Name)
		writers.Go(func() error {
			// A node may be created with a status, unlike most objects.
			_, err := client.CoreV1().Nodes().Create(groupCtx, node.object(version.GitVersion), metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("creating node %s: %w", node.Name, err)
			}
			if c.external == "" && !c.options.runs(ControllerManager) {
				return admit(groupCtx, client, node)
			}
			return nil
		})
	}
	if err := writers.Wait(); err != nil {
		return err
	}
	return waitAdmitted(ctx, client, names)
}

// DeleteNode deletes a node. What the control plane does then is what it does to a real node: the objects that the
// node owns are collected, and its pods go when they are found to be orphaned.
func (c *Cluster) DeleteNode(ctx context.Context, name string) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("making a client for nodes: %w", err)
	}
	if err := client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting node %s: %w", name, err)
	}
	return nil
}

func (n Node) object(kubelet string) *corev1.Node {
	now := metav1.Now()
	nodeLabels := map[string]string{
		corev1.LabelHostname:   n.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}
	maps.Copy(nodeLabels, n.Labels)
	allocatable := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	maps.Copy(allocatable, n.Allocatable)
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now,
		}
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        n.Name,
			Labels:      nodeLabels,
			Annotations: map[string]string{nodeAnnotation: nodeAnnotationValue},
		},
		Spec: corev1.NodeSpec{Taints: n.Taints},
		Status: corev1.NodeStatus{
			Capacity:    allocatable,
			Allocatable: allocatable,
			Phase:       corev1.NodeRunning,
			Conditions: []corev1.NodeCondition{
				condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
				condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
				condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
				condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
			},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: n.Name}},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:          kubelet,
				ContainerRuntimeVersion: "simulated",
				OperatingSystem:         "linux",
				Architecture:            "amd64",
			},
		},
	}
}

// admit takes the not-ready taint off, which admission puts on every new node and a controller manager takes off.
func admit(ctx context.Context, client kubernetes.Interface, node Node) error {
	created, err := client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading node %s: %w", node.Name, err)
	}
	created.Spec.Taints = node.Taints
	if _, err := client.CoreV1().Nodes().Update(ctx, created, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("removing the not-ready taint of node %s: %w", node.Name, err)
	}
	return nil
}

// waitAdmitted waits until none of the nodes has the not-ready taint.
func waitAdmitted(ctx context.Context, client kubernetes.Interface, names sets.Set[string]) error {
	var waiting []string
	err := wait.PollUntilContextTimeout(ctx, nodesReadyEvery, nodesReadyWithin, true,
		func(ctx context.Context) (bool, error) {
			list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
			if err != nil {
				return false, err
			}
			left := names.Clone()
			for _, node := range list.Items {
				notReady := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
					return taint.Key == corev1.TaintNodeNotReady
				})
				if !notReady {
					left.Delete(node.Name)
				}
			}
			waiting = sets.List(left)
			return len(waiting) == 0, nil
		})
	if err != nil {
		return fmt.Errorf("waiting for the control plane to accept %d new nodes, first %q: %w",
			len(waiting), slices.Concat(waiting, []string{""})[0], err)
	}
	return nil
}
