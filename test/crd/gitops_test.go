package crd_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/catalog"
	"github.com/gpupool/gpupool-operator/internal/plan"
	"github.com/gpupool/gpupool-operator/internal/selector"
)

const configSamples = "../../config/samples"

// TestConfigSamplesAreAppliedAsTheyStand applies what users copy, as GitOps tools do, again and again. Nothing is
// added to spec, so there is no drift to report, and applying again changes nothing.
func TestConfigSamplesAreAppliedAsTheyStand(t *testing.T) {
	server := running(t)
	for file, object := range readConfigSamples(t) {
		t.Run(file, func(t *testing.T) {
			t.Cleanup(func() { server.remove(t, object) })
			states := make([]*unstructured.Unstructured, 3)
			for i := range states {
				server.apply(t, object)
				states[i] = server.get(t, object)
				if diff := cmp.Diff(object.Object["spec"], states[i].Object["spec"]); diff != "" {
					t.Errorf("the server changed spec (-applied +got):\n%s", diff)
				}
				if generation := states[i].GetGeneration(); generation != 1 {
					t.Errorf("generation = %d, want 1", generation)
				}
			}
			// The server stores the default of status with the first write after the creation: the second time has a new
			// resourceVersion, and the third has not.
			if diff := cmp.Diff(states[1], states[2]); diff != "" {
				t.Errorf("applying again changed it (-second +third):\n%s", diff)
			}
		})
	}
}

// TestConfigSamplesAreServed: the operator accepts what it tells users to copy, and every pool that a profile names is
// there.
func TestConfigSamplesAreServed(t *testing.T) {
	known, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	compiler := selector.NewCompiler(64)
	server := plan.ServerFacts{SharedDevices: true}
	objects := readConfigSamples(t)
	pools := map[string]plan.PoolFacts{}
	for file, object := range objects {
		if object.GetKind() != v1alpha1.GpuPoolKind {
			continue
		}
		pool := &v1alpha1.GpuPool{}
		decode(t, object, pool)
		wanted := plan.ForPool(plan.PoolInputs{Pool: pool, Catalog: known, Compiler: compiler, Server: server})
		if wanted.Refused != nil {
			t.Errorf("%s: %s", file, wanted.Refused.Message)
		}
		facts := plan.FactsOf(pool)
		facts.Published = true
		pools[pool.Name] = facts
	}
	for file, object := range objects {
		if object.GetKind() != v1alpha1.WorkloadProfileKind {
			continue
		}
		profile := &v1alpha1.WorkloadProfile{}
		decode(t, object, profile)
		wanted := plan.ForProfile(plan.ProfileInputs{
			Profile: profile, Pools: pools, Catalog: known, Compiler: compiler, Server: server,
		})
		if wanted.Refused != nil {
			t.Errorf("%s: %s", file, wanted.Refused.Message)
		}
	}
}

// TestConfigSamplesAreListed: `kubectl apply -k config/samples` applies every file.
func TestConfigSamplesAreListed(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(configSamples, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct {
		Resources []string `json:"resources"`
	}
	if err := yaml.Unmarshal(content, &kustomization); err != nil {
		t.Fatal(err)
	}
	var want []string
	for file, object := range readConfigSamples(t) {
		want = append(want, file)
		if name := strings.ToLower(object.GetKind()) + "_" + object.GetName() + ".yaml"; file != name {
			t.Errorf("%s holds %s %s, want it to be called %s", file, object.GetKind(), object.GetName(), name)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, kustomization.Resources); diff != "" {
		t.Errorf("resources of kustomization.yaml (-want +got):\n%s", diff)
	}
}

// readConfigSamples reads the files of config/samples, each with one object.
func readConfigSamples(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(configSamples, "*_*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]*unstructured.Unstructured{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if content, err = yaml.YAMLToJSONStrict(content); err == nil {
			err = object.UnmarshalJSON(content)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		read[filepath.Base(path)] = object
	}
	if len(read) == 0 {
		t.Fatal("no samples")
	}
	return read
}

func decode(t *testing.T, object *unstructured.Unstructured, into runtime.Object) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
		t.Fatal(err)
	}
}

// apply applies a copy of an object with server-side apply.
func (s *apiServer) apply(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	applied := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
	if err := s.client.Apply(t.Context(), applied, client.FieldOwner("gitops")); err != nil {
		t.Fatal(err)
	}
}
