package scenarios_test

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wish is what a pod asks for.
type wish func(*corev1.PodSpec)

// template asks for a claim made from a ResourceClaimTemplate, for every container of the pod.
func template(name string) wish {
	return func(spec *corev1.PodSpec) {
		claim(spec, corev1.PodResourceClaim{Name: name, ResourceClaimTemplateName: &name})
	}
}

// sharedClaim asks for a ResourceClaim that exists.
func sharedClaim(name string) wish {
	return func(spec *corev1.PodSpec) { claim(spec, corev1.PodResourceClaim{Name: name, ResourceClaimName: &name}) }
}

func claim(spec *corev1.PodSpec, source corev1.PodResourceClaim) {
	spec.ResourceClaims = append(spec.ResourceClaims, source)
	for i := range spec.Containers {
		resources := &spec.Containers[i].Resources
		resources.Claims = append(resources.Claims, corev1.ResourceClaim{Name: source.Name})
	}
}

// limit asks for a resource as pods did before DRA.
func limit(name corev1.ResourceName, amount string) wish {
	return func(spec *corev1.PodSpec) {
		resources := &spec.Containers[0].Resources
		if resources.Limits == nil {
			resources.Limits = corev1.ResourceList{}
		}
		resources.Limits[name] = resource.MustParse(amount)
	}
}

// containers gives the pod a number of containers. It comes first.
func containers(n int) wish {
	return func(spec *corev1.PodSpec) {
		for i := 1; i < n; i++ {
			spec.Containers = append(spec.Containers,
				corev1.Container{Name: fmt.Sprintf("main-%d", i), Image: "example.com/main"})
		}
	}
}

// onNodes keeps the pod on nodes with a label.
func onNodes(label, value string) wish {
	return func(spec *corev1.PodSpec) { spec.NodeSelector = map[string]string{label: value} }
}

// newPod is a pod that is not created yet.
func newPod(namespace string, wishes ...wish) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "pod-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
	}
	for _, wish := range wishes {
		wish(&pod.Spec)
	}
	return pod
}

// create makes n equal pods.
func (s *scene) create(n int, namespace string, wishes ...wish) []*corev1.Pod {
	GinkgoHelper()
	var made []*corev1.Pod
	for range n {
		pod := newPod(namespace, wishes...)
		Expect(k8s.Create(suiteContext, pod)).To(Succeed())
		made = append(made, pod)
	}
	s.pods = append(s.pods, made...)
	return made
}

// run makes n equal pods and waits until all of them run.
func (s *scene) run(n int, namespace string, wishes ...wish) []*corev1.Pod {
	GinkgoHelper()
	pods := s.create(n, namespace, wishes...)
	Eventually(states(pods)).Should(Equal(state{running: n}))
	return pods
}

// refuse makes a pod and waits until the scheduler has found no devices for it.
func (s *scene) refuse(namespace string, wishes ...wish) []*corev1.Pod {
	GinkgoHelper()
	pods := s.create(1, namespace, wishes...)
	Eventually(states(pods)).Should(Equal(state{waiting: 1}))
	return pods
}

// end deletes pods and waits until they are gone.
func (s *scene) end(pods ...*corev1.Pod) {
	GinkgoHelper()
	for _, pod := range pods {
		Expect(k8s.Delete(suiteContext, pod, client.GracePeriodSeconds(0))).To(Succeed())
	}
	for _, pod := range pods {
		Eventually(existence(pod)).Should(beNotFound())
	}
}

// state is how many pods run, and for how many the scheduler has found no devices. Pods that are gone do not count.
type state struct{ running, waiting int }

func states(pods []*corev1.Pod) func() (state, error) {
	return func() (state, error) {
		var found state
		for _, pod := range pods {
			err := k8s.Get(suiteContext, client.ObjectKeyFromObject(pod), pod)
			switch {
			case apierrors.IsNotFound(err):
			case err != nil:
				return found, err
			case pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil:
				found.running++
			case unschedulable(pod):
				found.waiting++
			}
		}
		return found, nil
	}
}

// unschedulable says whether the scheduler knew all that the pod asks for, and found no devices on some node. That a
// class or claim does not exist is another message, and may be true for a moment only.
func unschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable &&
			strings.Contains(c.Message, "cannot allocate all claims")
	})
}

// nodesOf are the nodes of pods that run, sorted.
func nodesOf(pods []*corev1.Pod) []string {
	var nodes []string
	for _, pod := range pods {
		nodes = append(nodes, pod.Spec.NodeName)
	}
	slices.Sort(nodes)
	return nodes
}

// claimsOf are the claims of a pod that runs, all of them allocated.
func claimsOf(pod *corev1.Pod) []*resourcev1.ResourceClaim {
	GinkgoHelper()
	Expect(k8s.Get(suiteContext, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	var names []string
	for _, status := range pod.Status.ResourceClaimStatuses {
		names = append(names, *status.ResourceClaimName)
	}
	for _, source := range pod.Spec.ResourceClaims {
		if source.ResourceClaimName != nil {
			names = append(names, *source.ResourceClaimName)
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		names = append(names, extended.ResourceClaimName)
	}
	var claims []*resourcev1.ResourceClaim
	for _, name := range names {
		claim := &resourcev1.ResourceClaim{}
		Expect(k8s.Get(suiteContext, client.ObjectKey{Namespace: pod.Namespace, Name: name}, claim)).To(Succeed())
		Expect(claim.Status.Allocation).NotTo(BeNil(), "claim %s", name)
		claims = append(claims, claim)
	}
	return claims
}

// allocation is what a pod that runs has got.
func allocation(pod *corev1.Pod) []resourcev1.DeviceRequestAllocationResult {
	GinkgoHelper()
	var results []resourcev1.DeviceRequestAllocationResult
	for _, claim := range claimsOf(pod) {
		results = append(results, claim.Status.Allocation.Devices.Results...)
	}
	return results
}

// parametersOf are the parameters that the drivers of a pod's devices are given.
func parametersOf(pod *corev1.Pod) []string {
	GinkgoHelper()
	var parameters []string
	for _, claim := range claimsOf(pod) {
		for _, config := range claim.Status.Allocation.Devices.Config {
			parameters = append(parameters, string(config.Opaque.Parameters.Raw))
		}
	}
	return parameters
}

// devicesOf are the devices of pods that run as request=device, sorted.
func devicesOf(pods ...*corev1.Pod) []string {
	GinkgoHelper()
	var devices []string
	for _, pod := range pods {
		for _, result := range allocation(pod) {
			devices = append(devices, result.Request+"="+result.Device)
		}
	}
	slices.Sort(devices)
	return devices
}

// attributesOf are the values of an attribute on the devices that a pod has got, by request.
func attributesOf(pod *corev1.Pod, attribute resourcev1.QualifiedName) map[string][]string {
	GinkgoHelper()
	values := map[string][]string{}
	for _, result := range allocation(pod) {
		found, err := slicesOf(result.Pool) // all resource pools of this suite are a node's
		Expect(err).NotTo(HaveOccurred())
		for _, slice := range found {
			for _, device := range slice.Spec.Devices {
				if slice.Spec.Driver == result.Driver && device.Name == result.Device {
					values[result.Request] = append(values[result.Request], text(device.Attributes[attribute]))
				}
			}
		}
	}
	return values
}

// text is the value of an attribute, or empty if there is none.
func text(attribute resourcev1.DeviceAttribute) string {
	switch {
	case attribute.StringValue != nil:
		return *attribute.StringValue
	case attribute.IntValue != nil:
		return fmt.Sprint(*attribute.IntValue)
	}
	return ""
}
