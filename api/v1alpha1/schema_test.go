package v1alpha1_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	// minDescription is the shortest description that says more than the name does.
	minDescription = 25
	// maxCRDSize keeps the definitions far below what etcd and client-side apply (256 KiB of annotations) can hold.
	maxCRDSize = 200 << 10
)

// ofKubernetes are the fields whose children Kubernetes describes and bounds, or not, in its own way.
var ofKubernetes = []string{"metadata", "spec.namespaces.selector", "status.conditions[]"}

// crd is one of the definitions that controller-gen writes.
type crd struct {
	apiextensionsv1.CustomResourceDefinition
	size int
}

func readCRDs(t *testing.T) map[string]crd {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crds := map[string]crd{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		read := crd{size: len(content)}
		if err := yaml.UnmarshalStrict(content, &read.CustomResourceDefinition); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		crds[read.Spec.Names.Kind] = read
	}
	if diff := cmp.Diff([]string{"GpuPool", "WorkloadProfile"}, slices.Sorted(maps.Keys(crds))); diff != "" {
		t.Fatalf("kinds (-want +got):\n%s", diff)
	}
	return crds
}

// field is a place in a schema.
type field struct {
	// path is what users write: spec.requests[].name. It is empty for the root.
	path string
	// name is the JSON name, empty for the root and for the items of a list.
	name   string
	schema apiextensionsv1.JSONSchemaProps
}

// fields are the root of a kind's schema and all that is below it, in order of their paths.
func (c crd) fields(t *testing.T) []field {
	t.Helper()
	if len(c.Spec.Versions) != 1 || c.Spec.Versions[0].Schema == nil {
		t.Fatalf("%s: want one version with a schema", c.Name)
	}
	return below(field{schema: *c.Spec.Versions[0].Schema.OpenAPIV3Schema})
}

func below(parent field) []field {
	found := []field{parent}
	for _, name := range slices.Sorted(maps.Keys(parent.schema.Properties)) {
		path := strings.TrimPrefix(parent.path+"."+name, ".")
		found = append(found, below(field{path, name, parent.schema.Properties[name]})...)
	}
	if items := parent.schema.Items; items != nil {
		found = append(found, below(field{path: parent.path + "[]", schema: *items.Schema})...)
	}
	if values := parent.schema.AdditionalProperties; values != nil && values.Schema != nil {
		found = append(found, below(field{path: parent.path + "{}", schema: *values.Schema})...)
	}
	return found
}

// isOfKubernetes reports whether the field is a part of a type of Kubernetes.
func (f field) isOfKubernetes() bool {
	return f.path == "apiVersion" || f.path == "kind" || slices.ContainsFunc(ofKubernetes, func(path string) bool {
		return f.path == path && f.name == "metadata" || strings.HasPrefix(f.path, path+".")
	})
}

func (f field) isSpec() bool { return f.path == "spec" || strings.HasPrefix(f.path, "spec.") }

// eachField calls check for all fields of both kinds that are not of Kubernetes.
func eachField(t *testing.T, check func(t *testing.T, f field)) {
	t.Helper()
	for kind, crd := range readCRDs(t) {
		t.Run(kind, func(t *testing.T) {
			checked := 0
			for _, f := range crd.fields(t) {
				if !f.isOfKubernetes() {
					check(t, f)
					checked++
				}
			}
			if checked < 10 {
				t.Errorf("only %d fields were checked", checked)
			}
		})
	}
}

func TestDescriptionsBeginWithTheNameAndSayMore(t *testing.T) {
	eachField(t, func(t *testing.T, f field) {
		if f.name == "" {
			return
		}
		description := f.schema.Description
		if !strings.HasPrefix(description, f.name+" ") {
			t.Errorf("%s: the description does not begin with %q: %q", f.path, f.name, description)
		}
		if len(description) < minDescription {
			t.Errorf("%s: the description is shorter than %d characters: %q", f.path, minDescription, description)
		}
	})
}

func TestEverythingIsBounded(t *testing.T) {
	eachField(t, func(t *testing.T, f field) {
		s := f.schema
		switch s.Type {
		case "string":
			if s.MaxLength == nil && len(s.Enum) == 0 && s.Format == "" {
				t.Errorf("%s: a string needs maxLength, enum or format", f.path)
			}
		case "array":
			if s.MaxItems == nil {
				t.Errorf("%s: a list needs maxItems", f.path)
			}
		case "integer":
			// The operator writes status; an upper bound there could only cost a write.
			if s.Minimum == nil || f.isSpec() && s.Maximum == nil {
				t.Errorf("%s: an integer needs a minimum, and under spec a maximum", f.path)
			}
		case "object":
			free := s.AdditionalProperties != nil || s.XPreserveUnknownFields != nil || len(s.Properties) == 0
			if free && s.MaxProperties == nil {
				t.Errorf("%s: a map or free-form object needs maxProperties", f.path)
			}
		case "boolean":
		default:
			t.Errorf("%s: type %q has no rule in this test", f.path, s.Type)
		}
	})
}

// TestOnlyStatusHasADefault: what the server writes into spec differs from what stands in Git, which GitOps tools report
// as drift.
func TestOnlyStatusHasADefault(t *testing.T) {
	// Without conditions kstatus takes an object that nobody has looked at yet for one that is done.
	const pending = `{"conditions":[{"lastTransitionTime":"1970-01-01T00:00:00Z","message":"Waiting for the operator",` +
		`"reason":"Pending","status":"Unknown","type":"Ready"}]}`
	for kind, crd := range readCRDs(t) {
		got := map[string]string{}
		for _, f := range crd.fields(t) {
			if f.schema.Default != nil {
				got[f.path] = string(f.schema.Default.Raw)
			}
		}
		if diff := cmp.Diff(map[string]string{"status": pending}, got); diff != "" {
			t.Errorf("%s: defaults (-want +got):\n%s", kind, diff)
		}
	}
}

// TestListsAreAtomic: an entry that somebody adds by hand to an atomic list goes when Git is applied again. Only
// conditions have several writers by convention.
func TestListsAreAtomic(t *testing.T) {
	eachField(t, func(t *testing.T, f field) {
		if f.schema.Type != "array" {
			return
		}
		want := "atomic"
		if f.path == "status.conditions" {
			want = "map"
		}
		if got := f.schema.XListType; got == nil || *got != want {
			t.Errorf("%s: list type %v, want %s", f.path, got, want)
		}
	})
}

// TestNamesDoNotCollide: kubectl looks a word up as a category first, and a category that equals a name of a kind makes
// `kubectl get <kind> <name>` fail for that kind. `gpu` would do that to the kinds of others.
func TestNamesDoNotCollide(t *testing.T) {
	owner := map[string]string{}
	categories := map[string]bool{}
	for kind, crd := range readCRDs(t) {
		names := crd.Spec.Names
		for _, name := range append([]string{names.Plural, names.Singular}, names.ShortNames...) {
			if owner[name] != "" {
				t.Errorf("%s and %s are both called %q", owner[name], kind, name)
			}
			owner[name] = kind
		}
		for _, category := range names.Categories {
			categories[category] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{"gpupool-dev": true}, categories); diff != "" {
		t.Errorf("categories (-want +got):\n%s", diff)
	}
	for category := range categories {
		if owner[category] != "" {
			t.Errorf("category %q is also a name of %s", category, owner[category])
		}
	}
}

func TestRulesSayWhatMustBe(t *testing.T) {
	eachField(t, func(t *testing.T, f field) {
		for _, rule := range f.schema.XValidations {
			if !strings.Contains(rule.Message, "must") && !strings.Contains(rule.Message, "immutable") {
				t.Errorf("%s: rule %s has message %q, which does not say what must be", f.path, rule.Rule, rule.Message)
			}
			if rule.MessageExpression != "" {
				t.Errorf("%s: a message expression hides the message from the samples", f.path)
			}
		}
		if f.schema.Pattern != "" {
			t.Errorf("%s: a pattern answers with a regular expression; write a rule with a message", f.path)
		}
	})
}

// TestRulesOfWholeObjects lists the rules at the root and directly on spec. Such a rule is judged whenever any part of
// the object is written: one that is added after a release refuses status writes and the removal of finalizers of
// objects that were made before it. They can then not even be deleted. A rule may be added here only before a kind is
// first released, or if it passes for every object that exists (optionalOldSelf).
func TestRulesOfWholeObjects(t *testing.T) {
	want := map[string][]string{
		"GpuPool": {
			"metadata.name must be a DNS label of at most 48 characters",
			"deviceClass.name is immutable; it must keep its value, or stay unset",
		},
		"WorkloadProfile": {
			"metadata.name must be a DNS label of at most 63 characters",
			"template.name is immutable; it must keep its value, or stay unset",
			"requests[].name must be unique",
			"the counts of all requests must add up to at most 32, the most devices that one claim can hold",
		},
	}
	got := map[string][]string{}
	for kind, crd := range readCRDs(t) {
		for _, f := range crd.fields(t) {
			if f.path != "" && f.path != "spec" {
				continue
			}
			for _, rule := range f.schema.XValidations {
				got[kind] = append(got[kind], rule.Message)
				if f.path == "" && (rule.OptionalOldSelf == nil || !*rule.OptionalOldSelf) {
					t.Errorf("%s: the rule %q at the root must hold on create alone", kind, rule.Message)
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules at the root and on spec (-want +got):\n%s", diff)
	}
}

func TestDefinitionsAreSmall(t *testing.T) {
	for kind, crd := range readCRDs(t) {
		if crd.size > maxCRDSize {
			t.Errorf("%s: the definition has %d bytes, want at most %d", kind, crd.size, maxCRDSize)
		}
	}
}
