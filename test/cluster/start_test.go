package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gpupool/gpupool-operator/test/cluster/internal/filelock"
)

// shellCluster is a cluster whose components are shell scripts.
func shellCluster(t *testing.T) (*Cluster, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	c := &Cluster{options: Options{Log: &log}.withDefaults(), dir: t.TempDir()}
	var err error
	if c.group, err = newGroup(""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.group.close)
	return c, &log
}

// script is a component that runs a shell script with its port as $1.
func script(text string, ready func(context.Context, []int) error) component {
	return component{
		name:    "component",
		program: "/bin/sh",
		ports:   1,
		args:    func(ports []int) []string { return []string{"-c", text, "sh", fmt.Sprint(ports[0])} },
		ready:   ready,
	}
}

func TestRunTriesOtherPortsWhenOneIsTaken(t *testing.T) {
	c, log := shellCluster(t)
	var tried []int
	spec := script(`
if [ -e second ]; then exec sleep 60; fi
touch second
echo "listen tcp 127.0.0.1:$1: bind: address already in use"
exit 1`, func(_ context.Context, ports []int) error {
		if !slices.Contains(tried, ports[0]) {
			tried = append(tried, ports[0])
		}
		if len(tried) < 2 {
			return errors.New("no answer")
		}
		return nil
	})
	p, ports, err := c.run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop(0)
	if len(tried) != 2 || ports[0] != tried[1] {
		t.Errorf("tried ports %v and returned %v, want two and the second", tried, ports)
	}
	if !strings.Contains(log.String(), "Somebody took a port of component") {
		t.Errorf("the log does not tell: %s", log)
	}
}

func TestRunShowsTheLogOfWhatFailed(t *testing.T) {
	for name, test := range map[string]struct {
		script  string
		timeout time.Duration
		want    []string
	}{
		"a component that ends": {
			script:  `echo "unknown flag: --x"; exit 3`,
			timeout: time.Minute,
			want:    []string{"starting component", "it ended (exit status 3)", "unknown flag: --x"},
		},
		"a component that is never ready": {
			script:  `echo "waiting for etcd"; exec sleep 60`,
			timeout: 300 * time.Millisecond,
			want:    []string{"starting component", "deadline", "no answer", "waiting for etcd"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := shellCluster(t)
			ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
			defer cancel()
			_, _, err := c.run(ctx, script(test.script, func(context.Context, []int) error {
				return errors.New("no answer")
			}))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
		})
	}
}

func TestUnexpectedEndOfAComponentIsLogged(t *testing.T) {
	c, _ := shellCluster(t)
	lines := make(chan string, 1)
	c.options.Log = writerFunc(func(line string) { lines <- line })
	_, _, err := c.run(t.Context(), script(`until [ -e go ]; do sleep 0.05; done; echo "panic: oops"; exit 2`,
		func(context.Context, []int) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "go"), []byte("now\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case line := <-lines:
		if !strings.Contains(line, "component ended unexpectedly (exit status 2)") || !strings.Contains(line, "oops") {
			t.Errorf("the log says %q", line)
		}
	case <-time.After(time.Minute):
		t.Error("nothing was logged")
	}
}

type writerFunc func(string)

func (f writerFunc) Write(data []byte) (int, error) {
	f(string(data))
	return len(data), nil
}

func TestProbeTellsClustersApart(t *testing.T) {
	var clusters []*Cluster
	for range 2 {
		c := &Cluster{dir: t.TempDir()}
		var err error
		if c.credentials, err = newCredentials(c.dir); err != nil {
			t.Fatal(err)
		}
		clusters = append(clusters, c)
	}
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Addr:     address(ports[0]),
		Handler:  http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		ErrorLog: log.New(io.Discard, "", 0),
	}
	own := clusters[0].credentials
	go func() { _ = server.ListenAndServeTLS(own.certFile, own.keyFile) }()
	t.Cleanup(func() { _ = server.Close() })

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	probe := clusters[0].probe("/readyz")
	for err := probe(ctx, ports); err != nil; err = probe(ctx, ports) {
		if ctx.Err() != nil {
			t.Fatalf("the own server never answered: %v", err)
		}
	}
	if err := clusters[1].probe("/readyz")(ctx, ports); err == nil {
		t.Error("took another cluster's server for its own")
	}
}

func TestSweepRemovesOnlyAbandonedFolders(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	old := time.Now().Add(-2 * sweepAge)
	for name, files := range map[string][]string{
		workdirPrefix + "abandoned": {ownerLock, "etcd.log"},
		workdirPrefix + "running":   {ownerLock},
		workdirPrefix + "kept":      {ownerLock, keepMark},
		"somebody-elses":            {ownerLock},
	} {
		folder := filepath.Join(base, name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(folder, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(folder, old, old); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := filelock.Try(filepath.Join(base, workdirPrefix+"running", ownerLock))
	if err != nil || lock == nil {
		t.Fatalf("lock = %v, %v", lock, err)
	}
	defer lock.Release()
	fresh, err := newWorkdir(Options{})
	if err != nil {
		t.Fatal(err)
	}
	sweep()

	found, err := os.ReadDir(base)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, entry := range found {
		if entry.Name() != filepath.Base(fresh.path) {
			left = append(left, entry.Name())
		}
	}
	want := []string{workdirPrefix + "kept", workdirPrefix + "running", "somebody-elses"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(fresh.path); err != nil {
		t.Errorf("the folder of a running cluster: %v", err)
	}
	if err := fresh.close(); err != nil {
		t.Error(err)
	}
}

func TestDirIsUsedByOneClusterAtATime(t *testing.T) {
	dir := t.TempDir()
	first, err := newWorkdir(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newWorkdir(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "another cluster is running") {
		t.Errorf("err = %v, want it to say that another cluster is running", err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	again, err := newWorkdir(Options{Dir: dir})
	if err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	if err := again.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a folder that the user named was removed: %v", err)
	}
}

func TestStartUsesTheClusterOfTestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	credentials, err := newCredentials(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := writeKubeconfig(path, credentials.restConfig(adminUser, 6443)); err != nil {
		t.Fatal(err)
	}
	t.Setenv(EnvKubeconfig, path)
	for name, test := range map[string]struct {
		options   Options
		wantError string
	}{
		"nothing is started":                   {},
		"a kept folder is no matter":           {options: Options{Keep: true}},
		"feature gates are refused":            {options: Options{FeatureGates: map[string]bool{"A": true}}, wantError: "FeatureGates"},
		"a runtime config is refused":          {options: Options{RuntimeConfig: map[string]string{"a/v1": "true"}}, wantError: "RuntimeConfig"},
		"an audit policy is refused":           {options: Options{AuditPolicy: "x"}, wantError: "AuditPolicy"},
		"a version is refused":                 {options: Options{Kubernetes: "1.37"}, wantError: "Kubernetes"},
		"a data folder is refused":             {options: Options{Dir: "/data"}, wantError: "Dir"},
		"a choice of no components is refused": {options: Options{Components: []Component{}}, wantError: "Components"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Start(t.Context(), test.options)
			if test.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), "option "+test.wantError+" is not available") {
					t.Errorf("err = %v, want it to refuse %s", err, test.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Config.Host != "https://127.0.0.1:6443" || c.Kubeconfig() != path || !c.External() || c.AuditLog() != "" {
				t.Errorf("the cluster is not the one of %s: %+v", EnvKubeconfig, c)
			}
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOptionsRefuseUnknownComponents(t *testing.T) {
	t.Setenv(EnvKubeconfig, "")
	_, err := Start(t.Context(), Options{Components: []Component{"kube-proxy"}})
	if err == nil || !strings.Contains(err.Error(), `unknown component "kube-proxy"`) {
		t.Errorf("err = %v", err)
	}
}

func TestFeatureGatesReachAllServers(t *testing.T) {
	c := &Cluster{
		dir:         t.TempDir(),
		credentials: &credentials{},
		options:     Options{FeatureGates: map[string]bool{"B": false, "A": true}},
	}
	for _, spec := range []component{c.apiserver(1), c.controllerManager(), c.scheduler()} {
		if args := spec.args([]int{2}); !slices.Contains(args, "--feature-gates=A=true,B=false") {
			t.Errorf("%s is started with %v", spec.name, args)
		}
	}
}
