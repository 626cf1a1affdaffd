package plan_test

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/catalog"
	"github.com/gpupool/gpupool-operator/internal/plan"
	"github.com/gpupool/gpupool-operator/internal/selector"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden plans every pool and profile under testdata and compares with the golden file beside it.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/p*/*.yaml") // pools and profiles
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, input := range inputs {
		if strings.HasSuffix(input, ".golden.yaml") {
			continue
		}
		tested++
		t.Run(strings.TrimSuffix(filepath.Base(input), ".yaml"), func(t *testing.T) {
			got := render(t, readObjects(t, input))
			golden := strings.TrimSuffix(input, ".yaml") + ".golden.yaml"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("plan differs from %s (-want +got):\n%s", golden, diff)
			}
		})
	}
	if tested == 0 {
		t.Fatal("no inputs found")
	}
}

// TestSameInputsSameBytes plans with everything in another order that has no order.
func TestSameInputsSameBytes(t *testing.T) {
	objects := readObjects(t, "testdata/profiles/names-and-selector.yaml")
	want := render(t, objects)
	slices.Reverse(objects.namespaces)
	slices.SortFunc(objects.namespaces, func(a, b plan.Namespace) int { return strings.Compare(a.Name, b.Name) })
	slices.Reverse(objects.profile.Spec.Namespaces.Names)
	if diff := cmp.Diff(string(want), string(render(t, objects))); diff != "" {
		t.Errorf("another order gives another plan (-first +second):\n%s", diff)
	}
}

// TestPoolNotPublished waits for a pool that has no class of its own yet.
func TestPoolNotPublished(t *testing.T) {
	objects := readObjects(t, "testdata/profiles/eight-of-a-pool.yaml")
	in := objects.profileInputs(t)
	facts := in.Pools["h100"]
	facts.Published = false
	in.Pools["h100"] = facts
	got := plan.ForProfile(in)
	if got.Refused == nil || got.Refused.Reason != v1alpha1.ReasonPoolNotPublished || got.Template != nil {
		t.Errorf("got %+v, want it refused because the pool is not published, and no template", got)
	}
	if !strings.Contains(got.Refused.Message, `"h100"`) || !strings.Contains(got.Refused.Message, `"h100.gpupool.dev"`) {
		t.Errorf("message %q names neither pool nor class", got.Refused.Message)
	}
}

func TestSelectsNamespace(t *testing.T) {
	objects := readObjects(t, "testdata/profiles/names-and-selector.yaml")
	tests := map[string]struct {
		name   string
		labels map[string]string
		want   bool
	}{
		"by name":             {name: "serving", want: true},
		"by label":            {name: "new", labels: map[string]string{"team": "research"}, want: true},
		"by neither":          {name: "new", labels: map[string]string{"team": "other"}},
		"a name not yet seen": {name: "not-yet", want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := plan.SelectsNamespace(objects.profile, tc.name, tc.labels); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// objects are what an input file holds.
type objects struct {
	pools      []*v1alpha1.GpuPool
	profile    *v1alpha1.WorkloadProfile
	namespaces []plan.Namespace
}

func readObjects(t *testing.T, file string) *objects {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	read := &objects{}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return read
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch o := object.(type) {
		case *v1alpha1.GpuPool:
			read.pools = append(read.pools, o)
		case *v1alpha1.WorkloadProfile:
			read.profile = o
		case *corev1.Namespace:
			read.namespaces = append(read.namespaces, plan.Namespace{Name: o.Name, Labels: o.Labels})
		}
	}
}

func (o *objects) profileInputs(t *testing.T) plan.ProfileInputs {
	in := plan.ProfileInputs{
		Profile: o.profile, Pools: map[string]plan.PoolFacts{}, Namespaces: o.namespaces,
		Catalog: drivers(t), Compiler: selector.NewCompiler(64), Server: plan.ServerFacts{SharedDevices: true},
	}
	for _, pool := range o.pools {
		facts := plan.FactsOf(pool)
		facts.Published = true
		in.Pools[pool.Name] = facts
	}
	return in
}

func poolInputs(t *testing.T, pool *v1alpha1.GpuPool) plan.PoolInputs {
	t.Helper()
	return plan.PoolInputs{
		Pool: pool, Catalog: drivers(t), Compiler: selector.NewCompiler(64), Server: plan.ServerFacts{SharedDevices: true},
		Pools: map[string]plan.PoolFacts{pool.Name: plan.FactsOf(pool)},
	}
}

func drivers(t *testing.T) *catalog.Catalog {
	t.Helper()
	embedded, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return embedded
}

// render writes a plan as a reviewer reads it.
func render(t *testing.T, o *objects) []byte {
	t.Helper()
	var out bytes.Buffer
	if o.profile != nil {
		got := plan.ForProfile(o.profileInputs(t))
		writeSection(t, &out, "# namespaces: %s\n", got.Selected)
		writeSection(t, &out, "# waiting for: %s\n", got.Missing)
		writeSection(t, &out, "# without the label for adminAccess: %s\n", got.NotAllowed)
		if got.KeepOld {
			writeSection(t, &out, "# %s\n", []string{"an older template stays"})
		}
		writePlan(t, &out, got.Refused, got.Template)
		return out.Bytes()
	}
	for _, pool := range o.pools {
		got := plan.ForPool(poolInputs(t, pool))
		if (got.Refused == nil) != (got.Class != nil && got.Query != nil) {
			t.Errorf("half a plan: %+v", got)
		}
		writePlan(t, &out, got.Refused, got.Class)
	}
	return out.Bytes()
}

func writeSection(t *testing.T, out io.Writer, format string, names []string) {
	t.Helper()
	if len(names) > 0 {
		fmt.Fprintf(out, format, strings.Join(names, ", "))
	}
}

func writePlan(t *testing.T, out io.Writer, refused *plan.Finding, wanted any) {
	t.Helper()
	if refused != nil {
		wanted = map[string]any{"refused": map[string]string{"reason": refused.Reason, "message": refused.Message}}
	}
	content, err := yaml.Marshal(wanted)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write(content); err != nil {
		t.Fatal(err)
	}
}
