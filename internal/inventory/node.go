package inventory

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Node is a Node.
type Node struct {
	Name Symbol
	UID  UID
	// Labels are sorted by key.
	Labels []Label
	// Unschedulable is spec.unschedulable.
	Unschedulable bool
	// Ready is whether the condition Ready is True.
	Ready bool
	// AllocatablePods is how many pods the node takes in all.
	AllocatablePods int64
}

// Label is a label of a node.
type Label struct {
	Key, Value Symbol
}

func (*Node) kind() Kind { return Nodes }

// Key is the node's name.
func (n *Node) Key() types.NamespacedName { return types.NamespacedName{Name: n.Name.String()} }

// FromNode makes the compact form of a Node.
func FromNode(node *corev1.Node) *Node {
	compact := &Node{
		Name:            Intern(node.Name),
		UID:             packUID(node.UID),
		Unschedulable:   node.Spec.Unschedulable,
		AllocatablePods: node.Status.Allocatable.Pods().Value(),
	}
	if len(node.Labels) > 0 {
		compact.Labels = make([]Label, 0, len(node.Labels))
		for _, key := range sortedKeys(node.Labels) {
			compact.Labels = append(compact.Labels, Label{Key: Intern(key), Value: Intern(node.Labels[key])})
		}
	}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			compact.Ready = c.Status == corev1.ConditionTrue
		}
	}
	return compact
}

// takesPods says whether the scheduler may place pods on the node, whatever its taints: those a pod may tolerate.
func (n *Node) takesPods() bool { return n.Ready && !n.Unschedulable }

func (n *Node) label(key string) (string, bool) {
	i, found := slices.BinarySearchFunc(n.Labels, key, func(l Label, key string) int {
		return strings.Compare(l.Key.String(), key)
	})
	if !found {
		return "", false
	}
	return n.Labels[i].Value.String(), true
}

// NodeMatcher is a compiled node selector. A nil NodeMatcher matches every node.
type NodeMatcher struct {
	selector *nodeaffinity.NodeSelector
	// reads are the labels that the selector reads.
	reads []string
	// text is the same for selectors that were written the same.
	text Symbol
}

// NewNodeMatcher compiles node selector terms, which are ORed as in a pod's node affinity. As there, no terms and empty
// terms match no node. The error names the term that does not parse.
func NewNodeMatcher(terms []corev1.NodeSelectorTerm) (*NodeMatcher, error) {
	source := &corev1.NodeSelector{NodeSelectorTerms: terms}
	selector, err := nodeaffinity.NewNodeSelector(source)
	if err != nil {
		return nil, fmt.Errorf("compiling a node selector: %w", err)
	}
	var reads []string
	for _, term := range terms {
		for _, requirement := range term.MatchExpressions {
			reads = append(reads, requirement.Key)
		}
	}
	slices.Sort(reads)
	return &NodeMatcher{selector: selector, reads: slices.Compact(reads), text: Intern(source.String())}, nil
}

// Matches says whether the selector matches a node.
func (m *NodeMatcher) Matches(node *Node) bool {
	if m == nil {
		return true
	}
	// The library wants a Node. It looks at the name and at the labels that the selector names; the others would only
	// be copied in vain.
	labels := make(map[string]string, len(m.reads))
	for _, key := range m.reads {
		if value, found := node.label(key); found {
			labels[key] = value
		}
	}
	return m.selector.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name.String(), Labels: labels}})
}
