package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"k8s.io/client-go/rest"

	"github.com/gpupool/gpupool-operator/test/cluster/binaries"
)

// stopGrace is how long a component may take to end by itself. Nothing of value is lost when it is killed.
const stopGrace = 3 * time.Second

// Cluster is a running cluster.
type Cluster struct {
	// Config is an administrator's client configuration, without a rate limit.
	Config *rest.Config

	options      Options
	external     string
	dir          string
	programs     string
	kwokPrograms string
	credentials  *credentials
	workdir      workdir
	group        *group

	// processes are in the order in which they were started.
	processes []*process
	mu        sync.Mutex
	stop      func() error
}

// Start returns a cluster that is ready for use, building its programs first if they are not in the cache yet. The
// cluster lives until Stop, the end of ctx, or the end of this process, however it comes; no process and no temporary
// folder stays behind. Since ctx is the cluster's life, a context that ends with a set-up step, as Ginkgo's do, is not
// the right one. Any number of clusters can run side by side.
//
// If TEST_KUBECONFIG is set, the cluster is the one that it names, and nothing is started (see the package comment).
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if path := os.Getenv(EnvKubeconfig); path != "" {
		return useExisting(path, options)
	}
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	c := &Cluster{options: options}
	if err := c.build(ctx); err != nil {
		return nil, err
	}
	sweep()
	var err error
	if c.workdir, err = newWorkdir(options); err != nil {
		return nil, err
	}
	c.dir = c.workdir.path
	c.stop = sync.OnceValue(c.stopAll)
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	context.AfterFunc(ctx, func() { _ = c.Stop() })
	return c, nil
}

// Stop ends the cluster and removes its temporary folder. It returns when no process of it is left, and may be called
// more than once and from several goroutines. A cluster that Start did not start goes on.
func (c *Cluster) Stop() error {
	if c.stop == nil {
		return nil
	}
	return c.stop()
}

// Kubeconfig is the path of an administrator's kubeconfig file.
func (c *Cluster) Kubeconfig() string {
	if c.external != "" {
		return c.external
	}
	return c.kubeconfigOf(adminUser)
}

// AuditLog is the path of the audit log, or empty if the cluster has none.
func (c *Cluster) AuditLog() string {
	if c.options.AuditPolicy == "" {
		return ""
	}
	return filepath.Join(c.dir, "audit.log")
}

// Dir is the folder with the components' data and logs (<component>.log), or empty if Start did not start the cluster.
func (c *Cluster) Dir() string { return c.dir }

// External reports whether the cluster is the one of TEST_KUBECONFIG.
func (c *Cluster) External() bool { return c.external != "" }

func (c *Cluster) build(ctx context.Context) error {
	controlPlane, err := binaries.ControlPlane(c.options.Kubernetes)
	if err != nil {
		return err
	}
	builder := binaries.Builder{Log: c.options.Log}
	if c.programs, err = builder.Build(ctx, controlPlane); err != nil {
		return err
	}
	if !c.options.runs(Kwok) {
		return nil
	}
	kwok, err := binaries.Kwok()
	if err != nil {
		return err
	}
	c.kwokPrograms, err = builder.Build(ctx, kwok)
	return err
}

func (c *Cluster) start(ctx context.Context) error {
	var err error
	if c.group, err = newGroup(c.workdir.removable()); err != nil {
		return err
	}
	if c.credentials, err = newCredentials(c.dir); err != nil {
		return err
	}
	if c.options.AuditPolicy != "" {
		if err := os.WriteFile(c.auditPolicyFile(), []byte(c.options.AuditPolicy), 0o600); err != nil {
			return fmt.Errorf("writing the audit policy: %w", err)
		}
	}
	etcd, err := c.add(ctx, c.etcd())
	if err != nil {
		return err
	}
	apiserver, err := c.add(ctx, c.apiserver(etcd))
	if err != nil {
		return err
	}
	c.Config = c.credentials.restConfig(adminUser, apiserver)
	if err := c.writeConfigurations(apiserver); err != nil {
		return err
	}
	return c.startClients(ctx)
}

// startClients starts the components that only need the API server, all at once.
func (c *Cluster) startClients(ctx context.Context) error {
	clients, ctx := errgroup.WithContext(ctx)
	for component, spec := range map[Component]component{
		ControllerManager: c.controllerManager(),
		Scheduler:         c.scheduler(),
		Kwok:              c.kwok(),
	} {
		if !c.options.runs(component) {
			continue
		}
		clients.Go(func() error {
			_, err := c.add(ctx, spec)
			return err
		})
	}
	return clients.Wait()
}

// add runs the component and returns its first port.
func (c *Cluster) add(ctx context.Context, spec component) (int, error) {
	started := time.Now()
	process, ports, err := c.run(ctx, spec)
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(c.options.Log, "%s is ready after %s\n", spec.name, time.Since(started).Round(10*time.Millisecond))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, process)
	return ports[0], nil
}

// stopAll ends the components that use the API server, then the API server, then etcd.
func (c *Cluster) stopAll() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	const servers = 2
	var clients sync.WaitGroup
	for _, p := range c.processes[min(servers, len(c.processes)):] {
		clients.Go(func() { p.stop(stopGrace) })
	}
	clients.Wait()
	for i := min(servers, len(c.processes)) - 1; i >= 0; i-- {
		c.processes[i].stop(stopGrace)
	}
	if c.group != nil {
		c.group.close()
	}
	if !c.workdir.temporary {
		fmt.Fprintf(c.options.Log, "Data and logs stay in %s\n", c.dir)
	}
	return c.workdir.close()
}

// lockedWriter lets several goroutines write whole lines to one writer.
type lockedWriter struct {
	mu     sync.Mutex
	writer io.Writer
}

func (w *lockedWriter) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writer.Write(data)
}
