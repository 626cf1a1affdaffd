package cluster

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// tokenLife outlasts any suite, so that clients need no renewal.
const tokenLife = 24 * time.Hour

// ServiceAccountConfig is a client configuration with the rights of a ServiceAccount and no others, for running a
// program under its own RBAC. The ServiceAccount has to exist; the token dies with it.
func (c *Cluster) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	return c.tokenConfig(ctx, types.NamespacedName{Namespace: namespace, Name: name}, nil)
}

// PodConfig is a client configuration for what runs in the pod: the rights of its ServiceAccount, by a token that is
// bound to the pod as in its mounted volume. The user's extra fields name the pod and its node, which policies use to
// let a driver write only its own node's objects. The token dies with the pod.
func (c *Cluster) PodConfig(ctx context.Context, pod *corev1.Pod) (*rest.Config, error) {
	account := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}
	return c.tokenConfig(ctx, account, &authenticationv1.BoundObjectReference{
		APIVersion: "v1",
		Kind:       "Pod",
		Name:       pod.Name,
		UID:        pod.UID,
	})
}

func (c *Cluster) tokenConfig(
	ctx context.Context, account types.NamespacedName, bound *authenticationv1.BoundObjectReference,
) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("making a client for tokens: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(tokenLife.Seconds())),
		BoundObjectRef:    bound,
	}}
	request, err = client.CoreV1().ServiceAccounts(account.Namespace).
		CreateToken(ctx, account.Name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("requesting a token of ServiceAccount %s: %w", account, err)
	}
	// Anonymous means: without any credential of the administrator, but with the server's address and certificate.
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = request.Status.Token
	config.QPS = c.Config.QPS
	return config, nil
}
