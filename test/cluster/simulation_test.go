package cluster

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	namespace = "default"
	soon      = 20 * time.Second
)

var _ = Describe("Simulated nodes", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		gpu := map[string]string{"accelerator": "gpu"}
		Expect(shared.AddNodes(ctx,
			Node{Name: "node-1", Labels: gpu},
			Node{Name: "node-2", Labels: gpu},
			Node{Name: "tainted", Taints: []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}},
		)).To(Succeed())
	})

	It("are Ready with what they were given and no taint besides", func(ctx SpecContext) {
		node := getNode(ctx, "node-1")
		Expect(node.Spec.Taints).To(BeEmpty())
		Expect(node.Labels).To(HaveKeyWithValue("accelerator", "gpu"))
		Expect(node.Status.Allocatable.Cpu().String()).To(Equal("64"))
		Expect(node.Status.NodeInfo.KubeletVersion).To(HavePrefix("v1."))
		Expect(getNode(ctx, "tainted").Spec.Taints).To(HaveExactElements(HaveField("Key", "team")))
	})

	It("run the pods of a DaemonSet", func(ctx SpecContext) {
		createDaemonSet(ctx, "everywhere", map[string]string{"accelerator": "gpu"})
		Eventually(ctx, func(g Gomega) {
			set, err := client.AppsV1().DaemonSets(namespace).Get(ctx, "everywhere", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(set.Status.NumberReady).To(BeEquivalentTo(2))
		}).WithTimeout(soon).Should(Succeed())
	})

	It("complete the pods of a Job after the time that they name", func(ctx SpecContext) {
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "short"},
			Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"test.gpupool.dev/complete-after": "200ms"}},
				Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: containers()},
			}},
		}
		_, err := client.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(g Gomega) {
			job, err := client.BatchV1().Jobs(namespace).Get(ctx, "short", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(job.Status.Succeeded).To(BeEquivalentTo(1))
			g.Expect(job.Status.CompletionTime).NotTo(BeNil())
		}).WithTimeout(soon).Should(Succeed())
	})

	It("stop a deleted pod, and let it go when nobody holds it", func(ctx SpecContext) {
		createPod(ctx, "held", "test.gpupool.dev/other")
		deletePod(ctx, "held")
		Eventually(phaseOf(ctx, "held")).WithTimeout(soon).Should(Equal(corev1.PodFailed))
		Expect(getPod(ctx, "held").Finalizers).To(HaveExactElements("test.gpupool.dev/other"))
		patchPod(ctx, "held", `{"metadata":{"finalizers":null}}`)
		expectGone(ctx, "held")
	})

	It("report no terminal phase while a driver has devices prepared", func(ctx SpecContext) {
		createPod(ctx, "prepared", "gpu.example.com/prepared")
		deletePod(ctx, "prepared")
		Eventually(ctx, func(g Gomega) {
			status := getPod(ctx, "prepared").Status
			g.Expect(status.ContainerStatuses).To(HaveEach(HaveField("State.Terminated.ExitCode", BeEquivalentTo(143))))
			g.Expect(status.Phase).To(Equal(corev1.PodRunning))
		}).WithTimeout(soon).Should(Succeed())
		Consistently(phaseOf(ctx, "prepared")).WithTimeout(time.Second).Should(Equal(corev1.PodRunning))
		patchPod(ctx, "prepared", `{"metadata":{"finalizers":null}}`)
		expectGone(ctx, "prepared")
	})

	It("leave a pod's Ready condition to the test", func(ctx SpecContext) {
		createPod(ctx, "flipped")
		setPodReady(ctx, "flipped", corev1.ConditionFalse)
		Consistently(func() corev1.ConditionStatus { return podReady(ctx, "flipped") }).
			WithTimeout(time.Second).Should(Equal(corev1.ConditionFalse))
		deletePod(ctx, "flipped")
		expectGone(ctx, "flipped")
	})

	It("stay as a test makes them, and are tainted like real ones", func(ctx SpecContext) {
		setNodeReady(ctx, "node-2", corev1.ConditionFalse)
		patchNode(ctx, "node-2", `{"spec":{"unschedulable":true}}`)
		Eventually(taintsOf(ctx, "node-2")).WithTimeout(soon).Should(ContainElements(
			corev1.TaintNodeNotReady, corev1.TaintNodeUnschedulable))
		Consistently(taintsOf(ctx, "node-2")).WithTimeout(time.Second).Should(ContainElement(corev1.TaintNodeNotReady))

		setNodeReady(ctx, "node-2", corev1.ConditionTrue)
		patchNode(ctx, "node-2", `{"spec":{"unschedulable":false}}`)
		Eventually(taintsOf(ctx, "node-2")).WithTimeout(soon).Should(BeEmpty())
	})

	It("may be made by hand", func(ctx SpecContext) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: "by-hand", Annotations: map[string]string{nodeAnnotation: nodeAnnotationValue},
		}}
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(g Gomega) {
			node := getNode(ctx, "by-hand")
			g.Expect(node.Status.Conditions).To(ContainElement(HaveField("Status", corev1.ConditionTrue)))
			g.Expect(node.Status.Allocatable.Pods().Value()).To(BeEquivalentTo(110))
			g.Expect(node.Spec.Taints).To(BeEmpty())
		}).WithTimeout(soon).Should(Succeed())
		Expect(shared.DeleteNode(ctx, "by-hand")).To(Succeed())
	})

	It("cause no writes when nothing happens", func(ctx SpecContext) {
		before := getNode(ctx, "node-1").ResourceVersion
		Consistently(func() string { return getNode(ctx, "node-1").ResourceVersion }).
			WithTimeout(2 * time.Second).Should(Equal(before))
		leases, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(leases.Items).To(BeEmpty())
	})
})

func containers() []corev1.Container {
	return []corev1.Container{{Name: "main", Image: "registry.example.com/main:1"}}
}

func createDaemonSet(ctx context.Context, name string, nodes map[string]string) {
	GinkgoHelper()
	podLabels := map[string]string{"app": name}
	_, err := client.AppsV1().DaemonSets(namespace).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: podLabels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels},
				Spec:       corev1.PodSpec{NodeSelector: nodes, Containers: containers()},
			},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// createPod makes a pod and waits until it is Ready.
func createPod(ctx context.Context, name string, finalizers ...string) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers},
		Spec:       corev1.PodSpec{Containers: containers()},
	}
	_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() corev1.ConditionStatus { return podReady(ctx, name) }).
		WithTimeout(soon).Should(Equal(corev1.ConditionTrue))
	return getPod(ctx, name)
}

func getPod(ctx context.Context, name string) *corev1.Pod {
	GinkgoHelper()
	pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return pod
}

func phaseOf(ctx context.Context, name string) func() corev1.PodPhase {
	return func() corev1.PodPhase { return getPod(ctx, name).Status.Phase }
}

func podReady(ctx context.Context, name string) corev1.ConditionStatus {
	for _, condition := range getPod(ctx, name).Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status
		}
	}
	return corev1.ConditionUnknown
}

func setPodReady(ctx context.Context, name string, status corev1.ConditionStatus) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, status)
	_, err := client.CoreV1().Pods(namespace).
		Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	Expect(err).NotTo(HaveOccurred())
}

func patchPod(ctx context.Context, name, patch string) {
	GinkgoHelper()
	_, err := client.CoreV1().Pods(namespace).
		Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func deletePod(ctx context.Context, name string) {
	GinkgoHelper()
	options := metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(30))}
	Expect(client.CoreV1().Pods(namespace).Delete(ctx, name, options)).To(Succeed())
}

func expectGone(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func() bool {
		_, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}).WithTimeout(soon).Should(BeTrue(), "pod %s stays", name)
}

func getNode(ctx context.Context, name string) *corev1.Node {
	GinkgoHelper()
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return node
}

func patchNode(ctx context.Context, name, patch string, subresources ...string) {
	GinkgoHelper()
	_, err := client.CoreV1().Nodes().
		Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	Expect(err).NotTo(HaveOccurred())
}

func setNodeReady(ctx context.Context, name string, status corev1.ConditionStatus) {
	GinkgoHelper()
	patchNode(ctx, name, fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, status), "status")
}

func taintsOf(ctx context.Context, name string) func() []string {
	return func() []string {
		var keys []string
		for _, taint := range getNode(ctx, name).Spec.Taints {
			keys = append(keys, taint.Key)
		}
		return keys
	}
}
