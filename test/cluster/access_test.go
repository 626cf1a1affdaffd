package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var _ = Describe("Access", func() {
	It("gives an administrator a kubeconfig file", func(ctx SpecContext) {
		config, err := clientcmd.BuildConfigFromFlags("", shared.Kubeconfig())
		Expect(err).NotTo(HaveOccurred())
		Expect(whoAmI(ctx, config)).To(HaveField("Groups", ContainElement("system:masters")))
	})

	It("gives a ServiceAccount's rights and no more", func(ctx SpecContext) {
		config, err := shared.ServiceAccountConfig(ctx, "kube-system", "default")
		Expect(err).NotTo(HaveOccurred())
		Expect(whoAmI(ctx, config)).To(HaveField("Username", "system:serviceaccount:kube-system:default"))
		account, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		_, err = account.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	})

	It("names the node of a pod in the pod's token", func(ctx SpecContext) {
		Expect(shared.AddNodes(ctx, Node{Name: "node-of-token"})).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(shared.DeleteNode(ctx, "node-of-token")).To(Succeed()) })
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "with-token"},
			Spec:       corev1.PodSpec{NodeName: "node-of-token", Containers: containers()},
		}
		pod, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		config, err := shared.PodConfig(ctx, pod)
		Expect(err).NotTo(HaveOccurred())
		user := whoAmI(ctx, config)
		Expect(user.Extra).To(HaveKeyWithValue(
			"authentication.kubernetes.io/node-name", authenticationv1.ExtraValue{"node-of-token"}))
		Expect(user.Extra).To(HaveKeyWithValue(
			"authentication.kubernetes.io/pod-name", authenticationv1.ExtraValue{"with-token"}))
		deletePod(ctx, pod.Name)
		expectGone(ctx, pod.Name)
	})

	It("leaves a trace in the audit log, each component under its own name", func(ctx SpecContext) {
		config, err := shared.ServiceAccountConfig(ctx, "kube-system", "default")
		Expect(err).NotTo(HaveOccurred())
		whoAmI(ctx, config)
		Eventually(auditedUsers).WithTimeout(soon).Should(SatisfyAll(
			HaveKey("system:serviceaccount:kube-system:default"),
			HaveKey(schedUser), HaveKey(kcmUser), HaveKey(kwokUser)))
	})
})

func whoAmI(ctx context.Context, config *rest.Config) authenticationv1.UserInfo {
	GinkgoHelper()
	account, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	review, err := account.AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return review.Status.UserInfo
}

func auditedUsers() sets.Set[string] {
	GinkgoHelper()
	file, err := os.Open(shared.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	users := sets.New[string]()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			User authenticationv1.UserInfo `json:"user"`
		}
		Expect(json.Unmarshal(lines.Bytes(), &event)).To(Succeed())
		users.Insert(event.User.Username)
	}
	return users
}
