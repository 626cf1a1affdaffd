package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gpupool/gpupool-operator/test/cluster/internal/filelock"
)

// The test binary runs itself with this variable set to play another process that builds the tiny module.
const envTinyModule = "GPUPOOL_TEST_TINY_MODULE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envTinyModule); dir != "" {
		_, err := Builder{Log: os.Stdout}.Build(context.Background(), tinySet(dir))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// tinyModule writes a module with one small program.
func tinyModule(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":       "module example.com/tiny\n\ngo 1.26.0\n",
		"go.sum":       "",
		"tools.go":     "//go:build tools\n\npackage tiny\n",
		"tiny/main.go": source,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func tinySet(dir string) Set {
	return Set{
		Name:     "tiny",
		Dir:      dir,
		LDFlags:  stripSymbols,
		Programs: []Program{{Name: "tiny", Package: "example.com/tiny/tiny"}},
		Cost:     "1 second",
	}
}

const goodSource = "package main\n\nfunc main() { println(\"hello\") }\n"

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	return names
}

func TestBuildIsKeptUntilAPinChanges(t *testing.T) {
	module := tinyModule(t, goodSource)
	var log bytes.Buffer
	builder := Builder{Cache: t.TempDir(), Log: &log}
	build := func() string {
		dir, err := builder.Build(t.Context(), tinySet(module))
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	first := build()
	out, err := exec.Command(filepath.Join(first, "tiny")).CombinedOutput()
	if err != nil || string(out) != "hello\n" {
		t.Fatalf("the built program says %q, %v", out, err)
	}
	if again := build(); again != first {
		t.Errorf("the same pins were built into %s and %s", first, again)
	}
	if builds := strings.Count(log.String(), "from source"); builds != 1 {
		t.Errorf("built %d times, want once; log:\n%s", builds, log.String())
	}

	if err := os.WriteFile(filepath.Join(module, "tools.go"), []byte("package tiny\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if changed := build(); changed == first {
		t.Error("changed pins were not built anew")
	}
}

func TestBuildThatFailsShowsWhyAndLeavesNothing(t *testing.T) {
	cache := t.TempDir()
	module := tinyModule(t, "package main\n\nfunc main() { undefinedName() }\n")
	_, err := Builder{Cache: cache}.Build(t.Context(), tinySet(module))
	if err == nil {
		t.Fatal("a program that does not compile was built")
	}
	for _, want := range []string{"building tiny", "main.go:3", "undefinedName"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if diff := cmp.Diff([]string{}, entries(t, filepath.Join(cache, "tiny"))); diff != "" {
		t.Errorf("left in the cache (-want +got):\n%s", diff)
	}
}

func TestBuildNeverMendsGoMod(t *testing.T) {
	module := tinyModule(t, "package main\n\nimport _ \"golang.org/x/mod/semver\"\n\nfunc main() {}\n")
	before, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOFLAGS", "-mod=mod")
	if _, err := (Builder{Cache: t.TempDir()}).Build(t.Context(), tinySet(module)); err == nil {
		t.Error("a module that go.mod does not require was used")
	}
	after, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("go.mod was written (-before +after):\n%s", diff)
	}
}

func TestProcessesShareOneBuild(t *testing.T) {
	module, cache := tinyModule(t, goodSource), t.TempDir()
	outputs := make([]string, 3)
	var processes sync.WaitGroup
	for i := range outputs {
		processes.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), envTinyModule+"="+module, EnvCache+"="+cache)
			out, err := cmd.CombinedOutput()
			outputs[i] = string(out)
			if err != nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
		})
	}
	processes.Wait()
	if builds := strings.Count(strings.Join(outputs, ""), "from source"); builds != 1 {
		t.Errorf("%d processes built, want one; they said:\n%s", builds, strings.Join(outputs, "---\n"))
	}
}

func TestBuildWaitsForAnotherProcessAndSaysSo(t *testing.T) {
	cache := t.TempDir()
	lock, err := filelock.Try(filepath.Join(cache, "tiny.lock"))
	if err != nil || lock == nil {
		t.Fatalf("lock = %v, %v", lock, err)
	}
	// Releases the lock as soon as the builder says that it waits, so the test fails by its deadline if it never does.
	log := writerFunc(func(line string) {
		if strings.HasPrefix(line, "Waiting for another process that builds tiny") && lock != nil {
			lock.Release()
			lock = nil
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	builder := Builder{Cache: cache, Log: log}
	if _, err := builder.Build(ctx, tinySet(tinyModule(t, goodSource))); err != nil {
		t.Fatal(err)
	}
	if lock != nil {
		t.Error("built without waiting for the lock")
	}
}

func TestBuildStopsWaitingWithItsContext(t *testing.T) {
	cache := t.TempDir()
	lock, err := filelock.Try(filepath.Join(cache, "tiny.lock"))
	if err != nil || lock == nil {
		t.Fatalf("lock = %v, %v", lock, err)
	}
	defer lock.Release()
	ctx, cancel := context.WithCancel(t.Context())
	builder := Builder{Cache: cache, Log: writerFunc(func(string) { cancel() })}
	if _, err := builder.Build(ctx, tinySet(tinyModule(t, goodSource))); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want %v", err, context.Canceled)
	}
}

type writerFunc func(string)

func (f writerFunc) Write(data []byte) (int, error) {
	f(string(data))
	return len(data), nil
}

func TestPruneKeepsTheLastUsedBuilds(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{
		"oldest": 5 * time.Hour, "older": 4 * time.Hour, "old": 3 * time.Hour, "used": 2 * time.Hour, "new": time.Hour,
		temporaryPrefix + "1234": 0,
	} {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := prune(dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"new", "old", "used"}, entries(t, dir)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestProgress(t *testing.T) {
	for name, test := range map[string]struct {
		output     []string
		total      int
		wantLine   string
		wantOutput string
	}{
		"downloads are counted while packages are looked for": {
			output:   []string{"go: downloading k8s.io/api v0.37.2\ngo: down", "loading k8s.io/client-go v0.37.2\n"},
			wantLine: "Building x: looking for packages, 2 modules downloaded, 0s",
		},
		"package names are counted": {
			output:   []string{"internal/cpu\nk8s.io/api/core/v1\n"},
			total:    1510,
			wantLine: "Building x: 2 of at most 1510 packages compiled, 0s",
		},
		"what the compiler says is kept": {
			output:     []string{"k8s.io/api/core/v1\n# example.com/x\n", "./main.go:3:15: undefined: y\n"},
			total:      2,
			wantLine:   "Building x: 1 of at most 2 packages compiled, 0s",
			wantOutput: "# example.com/x\n./main.go:3:15: undefined: y",
		},
		"an unfinished last line is kept": {
			output:     []string{"fatal: out of mem"},
			wantLine:   "Building x: looking for packages, 0 modules downloaded, 0s",
			wantOutput: "fatal: out of mem",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgress(new(bytes.Buffer), "x")
			defer p.stop()
			p.total(test.total)
			for _, part := range test.output {
				if _, err := p.Write([]byte(part)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.wantLine, p.line()); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wantOutput, p.output()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVersionFlags(t *testing.T) {
	for name, test := range map[string]struct {
		goMod     string
		want      string
		wantError string
	}{
		"servers report the pinned version": {
			goMod: "module m\n\nrequire (\n\tgo.etcd.io/etcd/server/v3 v3.7.0\n\tk8s.io/kubernetes v1.38.0-beta.0\n)\n",
			want: "-s -w -X k8s.io/component-base/version.gitVersion=v1.38.0-beta.0" +
				" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=38",
		},
		"a module without Kubernetes is refused": {
			goMod:     "module m\n\nrequire go.etcd.io/etcd/server/v3 v3.7.0\n",
			wantError: "does not require k8s.io/kubernetes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "go.mod")
			if err := os.WriteFile(path, []byte(test.goMod), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := versionFlags(path)
			if test.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantError) {
					t.Errorf("err = %v, want %q", err, test.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}

func TestControlPlaneNeedsAFolder(t *testing.T) {
	if _, err := ControlPlane("1.0"); err == nil || !strings.Contains(err.Error(), "controlplane-1.0 has no go.mod") {
		t.Errorf("err = %v, want it to name the missing folder", err)
	}
}

func TestBuildDirIsFoundFromTheWorkingDirectory(t *testing.T) {
	// With -trimpath the path of a source file says nothing, and the go command is asked. Here it is asked in a folder
	// deep inside the module.
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", mainModule).Output()
	if err != nil {
		t.Fatal(commandError(err))
	}
	set, err := Kwok()
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(strings.TrimSpace(string(out)), "test/cluster/builds/kwok"); set.Dir != want {
		t.Errorf("Dir = %s, want %s", set.Dir, want)
	}
}
