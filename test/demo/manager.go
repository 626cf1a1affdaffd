package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gpupool/gpupool-operator/test/cluster"
	"github.com/gpupool/gpupool-operator/test/install"
)

// managerProcess is the manager as a process of its own.
type managerProcess struct {
	command *exec.Cmd
	folder  string
	log     *os.File
}

// startManager installs the operator's manifests, builds the manager and runs it with the rights that config/rbac gives
// it and no others.
func startManager(ctx context.Context, local *cluster.Cluster) (*managerProcess, error) {
	_, rights, err := install.Into(ctx, local)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "gpupool-demo-")
	if err != nil {
		return nil, err
	}
	m := &managerProcess{folder: folder}
	if err := m.start(ctx, rights); err != nil {
		_ = os.RemoveAll(folder)
		return nil, err
	}
	fmt.Printf("The manager runs as a process of its own, with the rights of ServiceAccount %s/%s\n",
		install.Namespace, install.ServiceAccount)
	return m, nil
}

func (m *managerProcess) start(ctx context.Context, rights *rest.Config) error {
	kubeconfig, binary := filepath.Join(m.folder, "kubeconfig"), filepath.Join(m.folder, "manager")
	if err := writeKubeconfig(rights, kubeconfig); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/manager")
	build.Dir, build.Stderr = install.Root(), os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the manager: %w", err)
	}
	log, err := os.Create(filepath.Join(m.folder, "manager.log"))
	if err != nil {
		return err
	}
	m.log = log
	m.command = exec.Command(binary, "--kubeconfig="+kubeconfig,
		"--leader-election-namespace="+install.Namespace, "--health-probe-bind-address=0")
	m.command.Stdout, m.command.Stderr = log, log
	if err := m.command.Start(); err != nil {
		return fmt.Errorf("starting the manager: %w", err)
	}
	return nil
}

// stop ends the process as Kubernetes does, and removes what it left.
func (m *managerProcess) stop() {
	_ = m.command.Process.Signal(syscall.SIGTERM)
	_ = m.command.Wait()
	_ = m.log.Close()
	_ = os.RemoveAll(m.folder)
}

// lastWords are the last lines of the manager's log.
func (m *managerProcess) lastWords() string {
	content, err := os.ReadFile(m.log.Name())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(bytes.TrimSpace(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// writeKubeconfig writes the file form of a configuration with a token.
func writeKubeconfig(config *rest.Config, file string) error {
	const name = "demo"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, file)
}
