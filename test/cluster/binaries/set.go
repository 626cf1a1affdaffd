package binaries

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const (
	mainModule       = "github.com/gpupool/gpupool-operator"
	kubernetesModule = "k8s.io/kubernetes"
	stripSymbols     = "-s -w"
)

// Program is one executable of a Set.
type Program struct {
	// Name is the executable's file name, for example kube-apiserver.
	Name string
	// Package is the import path of its main package.
	Package string
}

// Set is a group of programs that one nested module pins. They are built, cached and dropped together.
type Set struct {
	// Name is the set's name in messages and its folder in the cache.
	Name string
	// Dir is the folder of the nested module: go.mod, go.sum and tools.go.
	Dir string
	// LDFlags goes to the linker of every program in the set.
	LDFlags string
	// Programs are built in this order.
	Programs []Program
	// Cost says how long a first build takes, for the message that announces it. Unset: nothing is said.
	Cost string
}

// ControlPlane is etcd and the servers of the Kubernetes minor version, for example "1.37". There has to be a folder
// builds/controlplane-<minor>; the version that the servers report is the one its go.mod requires.
func ControlPlane(minor string) (Set, error) {
	name := "controlplane-" + minor
	dir, err := buildDir(name)
	if err != nil {
		return Set{}, err
	}
	flags, err := versionFlags(filepath.Join(dir, "go.mod"))
	if err != nil {
		return Set{}, err
	}
	return Set{
		Name:    name,
		Dir:     dir,
		LDFlags: flags,
		Programs: []Program{
			{Name: "etcd", Package: "go.etcd.io/etcd/server/v3"},
			{Name: "kube-apiserver", Package: "k8s.io/kubernetes/cmd/kube-apiserver"},
			{Name: "kube-controller-manager", Package: "k8s.io/kubernetes/cmd/kube-controller-manager"},
			{Name: "kube-scheduler", Package: "k8s.io/kubernetes/cmd/kube-scheduler"},
		},
		Cost: "10 to 15 minutes on 2 cores",
	}, nil
}

// Kwok is the program that plays the kubelet of simulated nodes.
func Kwok() (Set, error) {
	dir, err := buildDir("kwok")
	if err != nil {
		return Set{}, err
	}
	return Set{
		Name:     "kwok",
		Dir:      dir,
		LDFlags:  stripSymbols,
		Programs: []Program{{Name: "kwok", Package: "sigs.k8s.io/kwok/cmd/kwok"}},
		Cost:     "2 to 5 minutes on 2 cores",
	}, nil
}

// buildDir finds test/cluster/builds/<name>. The folders are modules of their own, so go:embed cannot carry them
// across the module border and they have to be found on disk. This file's path as the compiler saw it is right
// whatever the working directory is; only -trimpath hides it, and then the go command is asked, which needs a working
// directory inside the module.
func buildDir(name string) (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if ok && filepath.IsAbs(file) {
		dir := filepath.Join(filepath.Dir(filepath.Dir(file)), "builds", name)
		if isModule(dir) {
			return dir, nil
		}
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", mainModule).Output()
	if err != nil {
		return "", fmt.Errorf("finding the source folder of %s: %w", mainModule, commandError(err))
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "test", "cluster", "builds", name)
	if !isModule(dir) {
		return "", fmt.Errorf("%s has no go.mod; run inside a checkout of %s that has this version", dir, mainModule)
	}
	return dir, nil
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// versionFlags makes the servers report the version that goMod requires. Without them they call themselves
// v0.0.0-master, and clients that compare versions go astray.
func versionFlags(goMod string) (string, error) {
	data, err := os.ReadFile(goMod)
	if err != nil {
		return "", fmt.Errorf("reading the pinned versions: %w", err)
	}
	file, err := modfile.Parse(goMod, data, nil)
	if err != nil {
		return "", fmt.Errorf("reading the pinned versions: %w", err)
	}
	for _, require := range file.Require {
		if require.Mod.Path != kubernetesModule {
			continue
		}
		version := require.Mod.Version
		major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
		const prefix = " -X k8s.io/component-base/version."
		return stripSymbols + prefix + "gitVersion=" + version + prefix + "gitMajor=" + major +
			prefix + "gitMinor=" + minor, nil
	}
	return "", fmt.Errorf("%s does not require %s", goMod, kubernetesModule)
}

// commandError adds what a command said on its standard error output.
func commandError(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
