package matrix

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/test/cluster"
	"github.com/gpupool/gpupool-operator/test/install"
)

const (
	// versionVariable names the Kubernetes minor version to run on. Unset: the default of test/cluster.
	versionVariable = "MATRIX_KUBERNETES"
	// reportVariable names the file that gets the report. Unset: it is only logged.
	reportVariable = "MATRIX_REPORT"
)

// gates are the features that generated objects use and that some supported version has switched off.
var gates = []string{
	"DRAAdminAccess", "DRAConsumableCapacity", "DRADeviceTaints", "DRAExtendedResource", "DRAPartitionableDevices",
	"DRAPrioritizedList",
}

// needsConsumableCapacity are the plans that a server without DRAConsumableCapacity refuses, since the field
// allowMultipleAllocations is then unknown to CEL. The operator does not send them: it asks the server first.
var needsConsumableCapacity = []string{
	"pools/every-field.golden.yaml", "pools/shared.golden.yaml", "profiles/sharing-of-a-request.golden.yaml",
}

func TestAPIServerAcceptsEverything(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	if os.Getenv("TEST_KUBECONFIG") != "" {
		t.Skip("runs on servers with settings of its own")
	}
	report := &strings.Builder{}
	fmt.Fprintf(report, "# What an API server accepts\n\nMade by `make matrix-api`; do not edit.\n")
	t.Run("features as they are by default", func(t *testing.T) {
		checkServer(t, report, nil, needsConsumableCapacity)
	})
	t.Run("features on", func(t *testing.T) {
		on := map[string]bool{}
		for _, gate := range gates {
			on[gate] = true
		}
		checkServer(t, report, on, nil)
	})
	t.Log("\n" + report.String())
	if file := os.Getenv(reportVariable); file != "" && !t.Failed() {
		if err := os.WriteFile(file, []byte(report.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// checkServer sends everything to a server of its own. mayRefuse are the plans that it may refuse.
func checkServer(t *testing.T, report *strings.Builder, gates map[string]bool, mayRefuse []string) {
	t.Helper()
	c, version := startServer(t, gates)
	fmt.Fprintf(report, "\n## Kubernetes %s, ", version)
	if gates == nil {
		fmt.Fprintf(report, "features as they are by default\n\n")
	} else {
		fmt.Fprintf(report, "features on that are off in some supported version\n\n")
	}
	samples := apply(t, c, "config/samples", "*_*.yaml", nil)
	scenarios := apply(t, c, "docs/scenarios", "*.yaml", nil)
	plans := apply(t, c, "internal/plan/testdata", "*/*.golden.yaml", mayRefuse)
	fmt.Fprintf(report, "| | accepted whole | accepted without a part | refused |\n|---|---|---|---|\n")
	fmt.Fprintf(report, "| CustomResourceDefinitions, RBAC | all | | |\n")
	for _, r := range []struct {
		name string
		result
	}{{"`config/samples`", samples}, {"`docs/scenarios`, kinds of `gpupool.dev` and `resource.k8s.io`", scenarios}, {"golden plans: classes and templates", plans}} {
		fmt.Fprintf(report, "| %s | %d | %s | %s |\n", r.name, r.whole, list(r.without), list(r.refused))
	}
}

func list(names []string) string {
	if len(names) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", len(names), strings.Join(names, ", "))
}

// startServer starts etcd and an API server, with what the operator brings.
func startServer(t *testing.T, gates map[string]bool) (c client.Client, gitVersion string) {
	t.Helper()
	running, err := cluster.Start(t.Context(), cluster.Options{
		Log: os.Stderr, Kubernetes: os.Getenv(versionVariable), Components: []cluster.Component{}, FeatureGates: gates,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, _, err = install.Into(t.Context(), running)
	if err != nil {
		t.Fatalf("the operator's CustomResourceDefinitions and rights: %v", err)
	}
	version, err := discovery.NewDiscoveryClientForConfigOrDie(running.Config).ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	// Where templates go; a server allows admin access in namespaces with the label only.
	if err := install.YAML(t.Context(), c, []byte(`
apiVersion: v1
kind: Namespace
metadata: {name: plans, labels: {resource.kubernetes.io/admin-access: "true"}}
`)); err != nil {
		t.Fatal(err)
	}
	return c, version.GitVersion
}

// result is what a server has said of the files of a folder.
type result struct {
	whole            int
	without, refused []string
}

// apply sends the objects of files in a dry run.
func apply(t *testing.T, c client.Client, folder, pattern string, mayRefuse []string) result {
	t.Helper()
	root := filepath.Join(install.Root(), folder)
	files, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(files) < 10 {
		t.Fatalf("only %d files match %s in %s (%v)", len(files), pattern, folder, err)
	}
	var found result
	for _, file := range files {
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		dropped, err := applyFile(t, c, file)
		switch {
		case err != nil && slices.Contains(mayRefuse, name):
			found.refused = append(found.refused, name)
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case dropped:
			found.without = append(found.without, name)
		default:
			found.whole++
		}
	}
	return found
}

// applyFile says whether the server drops a part of any object of a file.
func applyFile(t *testing.T, c client.Client, file string) (dropped bool, err error) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	if strings.HasPrefix(string(content), "refused:") || strings.Contains(string(content), "\nrefused:") {
		return false, nil // a golden plan without objects
	}
	objects, err := install.Objects(content)
	if err != nil {
		return false, err
	}
	for _, object := range objects {
		group := object.GroupVersionKind().Group
		if group != v1alpha1.GroupVersion.Group && group != resourcev1.GroupName || object.GetKind() == "DeviceTaintRule" {
			continue // a user's, and not of every version
		}
		if object.GetKind() == "ResourceClaimTemplate" || object.GetNamespace() != "" {
			object.SetNamespace("plans")
		}
		sent := object.DeepCopy()
		err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object),
			client.DryRunAll, client.ForceOwnership, client.FieldOwner("matrix"))
		if err != nil {
			return false, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		dropped = dropped || !holds(object.Object["spec"], sent.Object["spec"])
	}
	return dropped, nil
}

// holds says whether a value that a server returned has all of what was sent. The server adds defaults, and omits an empty
// text.
func holds(got, sent any) bool {
	if got == nil && sent == "" {
		return true
	}
	switch want := sent.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		for key, value := range want {
			ok = ok && holds(have[key], value)
		}
		return ok
	case []any:
		have, ok := got.([]any)
		ok = ok && len(have) == len(want)
		for i := range want {
			ok = ok && holds(have[i], want[i])
		}
		return ok
	}
	return fmt.Sprint(got) == fmt.Sprint(sent) // a number may be read as another type
}
