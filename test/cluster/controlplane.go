package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// nodeGrace is how long a node without a heartbeat counts as alive. Simulated nodes send none, to keep the API
	// server quiet; a test that wants a dead node says so in the node's conditions.
	nodeGrace = 10000 * time.Hour
	// probeTimeout bounds one question whether a component is ready.
	probeTimeout = 2 * time.Second
	serviceRange = "10.96.0.0/16"
)

// schedulerConfig raises the client's limits, which would hold the scheduler at 50 requests a second, and shortens the
// time after which a pod that did not fit is tried again.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %s
  qps: 1000
  burst: 2000
leaderElection:
  leaderElect: false
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
`

func (c *Cluster) etcd() component {
	return component{
		name:    "etcd",
		program: filepath.Join(c.programs, "etcd"),
		ports:   2,
		args: func(ports []int) []string {
			client, peer := "https://"+address(ports[0]), "http://"+address(ports[1])
			return []string{
				"--data-dir=" + filepath.Join(c.dir, "etcd"),
				"--listen-client-urls=" + client,
				"--advertise-client-urls=" + client,
				"--listen-peer-urls=" + peer,
				"--initial-advertise-peer-urls=" + peer,
				"--initial-cluster=default=" + peer,
				"--cert-file=" + c.credentials.certFile,
				"--key-file=" + c.credentials.keyFile,
				// The data need not survive a crash of the machine.
				"--unsafe-no-fsync",
				"--log-level=warn",
			}
		},
		ready: c.probe("/health"),
	}
}

func (c *Cluster) apiserver(etcdPort int) component {
	return component{
		name:    "kube-apiserver",
		program: filepath.Join(c.programs, "kube-apiserver"),
		ports:   1,
		args: func(ports []int) []string {
			args := []string{
				"--etcd-servers=https://" + address(etcdPort),
				"--etcd-cafile=" + c.credentials.certFile,
				"--bind-address=127.0.0.1",
				fmt.Sprintf("--secure-port=%d", ports[0]),
				// Without a network there is no other address to advertise, and endpoints refuse this one.
				"--advertise-address=127.0.0.1",
				"--endpoint-reconciler-type=none",
				"--tls-cert-file=" + c.credentials.certFile,
				"--tls-private-key-file=" + c.credentials.keyFile,
				"--token-auth-file=" + c.credentials.tokenFile,
				"--service-account-key-file=" + c.credentials.serviceAccount,
				"--service-account-signing-key-file=" + c.credentials.serviceAccount,
				"--service-account-issuer=https://kubernetes.default.svc",
				"--authorization-mode=Node,RBAC",
				"--allow-privileged=true",
				"--service-cluster-ip-range=" + serviceRange,
			}
			if len(c.options.RuntimeConfig) > 0 {
				args = append(args, "--runtime-config="+joinPairs(c.options.RuntimeConfig))
			}
			if c.options.AuditPolicy != "" {
				args = append(args,
					"--audit-policy-file="+c.auditPolicyFile(),
					"--audit-log-path="+c.AuditLog(),
					// Megabytes; a log that is rotated under a reader loses lines.
					"--audit-log-maxsize=4096",
				)
			}
			return append(args, c.featureGates()...)
		},
		ready: c.probe("/readyz"),
	}
}

func (c *Cluster) controllerManager() component {
	healthy := c.probe("/healthz")
	return component{
		name:    string(ControllerManager),
		program: filepath.Join(c.programs, string(ControllerManager)),
		ports:   1,
		args: func(ports []int) []string {
			return append(c.featureGates(),
				"--kubeconfig="+c.kubeconfigOf(kcmUser),
				"--bind-address=127.0.0.1",
				fmt.Sprintf("--secure-port=%d", ports[0]),
				"--tls-cert-file="+c.credentials.certFile,
				"--tls-private-key-file="+c.credentials.keyFile,
				"--service-account-private-key-file="+c.credentials.serviceAccount,
				"--use-service-account-credentials=true",
				// Without it the ca.crt of every pod is empty.
				"--root-ca-file="+c.credentials.certFile,
				"--leader-elect=false",
				// With the default limits everything runs at 10 pods a second.
				"--kube-api-qps=1000",
				"--kube-api-burst=2000",
				// How soon a node that a test makes unready is tainted; the default is 5 s.
				"--node-monitor-period=1s",
				"--node-monitor-grace-period="+nodeGrace.String(),
			)
		},
		ready: func(ctx context.Context, ports []int) error {
			if err := healthy(ctx, ports); err != nil {
				return err
			}
			return c.defaultAccountExists(ctx)
		},
	}
}

func (c *Cluster) scheduler() component {
	return component{
		name:    string(Scheduler),
		program: filepath.Join(c.programs, string(Scheduler)),
		ports:   1,
		args: func(ports []int) []string {
			return append(c.featureGates(),
				"--config="+c.schedulerConfigFile(),
				"--bind-address=127.0.0.1",
				fmt.Sprintf("--secure-port=%d", ports[0]),
				"--tls-cert-file="+c.credentials.certFile,
				"--tls-private-key-file="+c.credentials.keyFile,
			)
		},
		// /readyz waits until the scheduler has seen all objects once.
		ready: c.probe("/readyz"),
	}
}

func (c *Cluster) kwok() component {
	return component{
		name:    string(Kwok),
		program: filepath.Join(c.kwokPrograms, string(Kwok)),
		ports:   1,
		args: func(ports []int) []string {
			return []string{
				"--kubeconfig=" + c.kubeconfigOf(kwokUser),
				"--config=" + c.stagesFile(),
				"--manage-nodes-with-annotation-selector=" + nodeAnnotation + "=" + nodeAnnotationValue,
				// No leases: see nodeGrace.
				"--node-lease-duration-seconds=0",
				// Pod addresses; room for 65,000.
				"--cidr=10.244.0.0/16",
				"--server-address=" + address(ports[0]),
				"--tls-cert-file=" + c.credentials.certFile,
				"--tls-private-key-file=" + c.credentials.keyFile,
			}
		},
		ready: c.probe("/healthz"),
	}
}

// probe asks the component's first port. The certificate tells this cluster's components from any other's.
func (c *Cluster) probe(path string) func(context.Context, []int) error {
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(c.credentials.certPEM)
	client := &http.Client{
		Timeout: probeTimeout,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: authorities},
			DisableKeepAlives: true,
		},
	}
	return func(ctx context.Context, ports []int) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address(ports[0])+path, http.NoBody)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
		body, _ := io.ReadAll(io.LimitReader(response.Body, logTail))
		return fmt.Errorf("%s answers %s: %s", path, response.Status, strings.TrimSpace(string(body)))
	}
}

// defaultAccountExists is the last thing a new cluster needs before pods can be made in the default namespace.
func (c *Cluster) defaultAccountExists(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}

// writeConfigurations writes the files that the components' flags name.
func (c *Cluster) writeConfigurations(apiserverPort int) error {
	for _, name := range []string{adminUser, kwokUser, kcmUser, schedUser} {
		if err := writeKubeconfig(c.kubeconfigOf(name), c.credentials.restConfig(name, apiserverPort)); err != nil {
			return err
		}
	}
	scheduler := fmt.Sprintf(schedulerConfig, c.kubeconfigOf(schedUser))
	if err := os.WriteFile(c.schedulerConfigFile(), []byte(scheduler), 0o600); err != nil {
		return fmt.Errorf("writing the scheduler's configuration: %w", err)
	}
	stages, err := readStages()
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.stagesFile(), stages, 0o600); err != nil {
		return fmt.Errorf("writing kwok's stages: %w", err)
	}
	return nil
}

func (c *Cluster) schedulerConfigFile() string { return filepath.Join(c.dir, "scheduler.yaml") }
func (c *Cluster) stagesFile() string          { return filepath.Join(c.dir, "stages.yaml") }
func (c *Cluster) auditPolicyFile() string     { return filepath.Join(c.dir, "audit-policy.yaml") }

func (c *Cluster) kubeconfigOf(user string) string {
	return filepath.Join(c.dir, strings.ReplaceAll(user, ":", "-")+".kubeconfig")
}

func (c *Cluster) featureGates() []string {
	if len(c.options.FeatureGates) == 0 {
		return nil
	}
	return []string{"--feature-gates=" + joinPairs(c.options.FeatureGates)}
}

// joinPairs writes a map as a flag's value, in a fixed order.
func joinPairs[V any](pairs map[string]V) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		parts = append(parts, fmt.Sprintf("%s=%v", key, pairs[key]))
	}
	return strings.Join(parts, ",")
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
