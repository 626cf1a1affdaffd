package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
)

// certificateLife outlasts any test and any developer's cluster; a kept cluster is younger than this.
const certificateLife = 10 * 365 * 24 * time.Hour

// user is somebody who may talk to the API server with a static token.
type user struct {
	name  string
	group string
	token string
}

// The servers have their usual names, so that they work under the rights that a real cluster gives them and can be
// told apart in an audit log. kwok needs more than any real kubelet has.
const (
	adminUser = "kubernetes-admin"
	kwokUser  = "kwok"
	kcmUser   = "system:kube-controller-manager"
	schedUser = "system:kube-scheduler"
)

// credentials are the files that the components share.
type credentials struct {
	certFile, keyFile string
	// certPEM is also the authority that clients check: the certificate signs itself.
	certPEM        []byte
	serviceAccount string
	tokenFile      string
	users          map[string]user
}

// newCredentials writes fresh certificates and tokens into dir. Only the key that signs ServiceAccount tokens is taken
// over from an earlier cluster in dir.
func newCredentials(dir string) (*credentials, error) {
	c := &credentials{
		certFile:       filepath.Join(dir, "server.crt"),
		keyFile:        filepath.Join(dir, "server.key"),
		serviceAccount: filepath.Join(dir, "service-account.key"),
		tokenFile:      filepath.Join(dir, "tokens.csv"),
		users:          map[string]user{},
	}
	if err := c.writeCertificate(); err != nil {
		return nil, fmt.Errorf("making the servers' certificate: %w", err)
	}
	if _, err := os.Stat(c.serviceAccount); err != nil {
		if _, err := writeKey(c.serviceAccount); err != nil {
			return nil, fmt.Errorf("making the ServiceAccount key: %w", err)
		}
	}
	var lines strings.Builder
	for _, u := range []user{
		{name: adminUser, group: "system:masters"},
		{name: kwokUser, group: "system:masters"},
		{name: kcmUser},
		{name: schedUser},
	} {
		u.token = rand.Text()
		c.users[u.name] = u
		fmt.Fprintf(&lines, "%s,%s,%s,%s\n", u.token, u.name, u.name, u.group)
	}
	if err := os.WriteFile(c.tokenFile, []byte(lines.String()), 0o600); err != nil {
		return nil, fmt.Errorf("writing the token file: %w", err)
	}
	return c, nil
}

// writeCertificate makes one certificate that all servers use and all clients trust. It differs from cluster to
// cluster, so no client mistakes another cluster's server for its own.
func (c *credentials) writeCertificate() error {
	key, err := writeKey(c.keyFile)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "local-cluster"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(certificateLife),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:         true,
		// Required for IsCA to be encoded.
		BasicConstraintsValid: true,
		// 10.96.0.1 is the first address of the service range: the kubernetes Service.
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	c.certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return os.WriteFile(c.certFile, c.certPEM, 0o600)
}

func writeKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	return key, os.WriteFile(path, data, 0o600)
}

// restConfig is a client configuration for the user at the API server's port, without a rate limit.
func (c *credentials) restConfig(name string, port int) *rest.Config {
	return &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", port),
		BearerToken:     c.users[name].token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.certPEM},
		QPS:             -1,
	}
}

// writeKubeconfig writes what restConfig says to a file.
func writeKubeconfig(path string, config *rest.Config) error {
	const name = "local"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}
