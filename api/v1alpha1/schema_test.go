package v1alpha1_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/gpupool/gpupool-operator/test/crd/schema"
)

const (
	// minDescription is the shortest description that says more than the name does.
	minDescription = 25
	// maxCRDSize keeps the definitions far below what etcd and client-side apply (256 KiB of annotations) can hold.
	maxCRDSize = 200 << 10
)

func readCRDs(t *testing.T) map[string]schema.CRD {
	t.Helper()
	crds, err := schema.Read("../../config/crd/bases")
	if err != nil {
		t.Fatal(err)
	}
	return crds
}

// eachField calls check for all fields of both kinds but those that every Kubernetes object has.
func eachField(t *testing.T, check func(t *testing.T, f schema.Field)) {
	t.Helper()
	for kind, crd := range readCRDs(t) {
		t.Run(kind, func(t *testing.T) {
			for _, f := range crd.Fields() {
				if !f.IsOfTypeMeta() {
					check(t, f)
				}
			}
		})
	}
}

func TestDescriptionsBeginWithTheNameAndSayMore(t *testing.T) {
	eachField(t, func(t *testing.T, f schema.Field) {
		if f.Name == "" {
			return
		}
		description := f.Schema.Description
		if !strings.HasPrefix(description, f.Name+" ") {
			t.Errorf("%s: the description does not begin with %q: %q", f.Path, f.Name, description)
		}
		if len(description) < minDescription {
			t.Errorf("%s: the description is shorter than %d characters: %q", f.Path, minDescription, description)
		}
	})
}

func TestEverythingIsBounded(t *testing.T) {
	eachField(t, func(t *testing.T, f schema.Field) {
		s := f.Schema
		switch s.Type {
		case "string":
			if s.MaxLength == nil && len(s.Enum) == 0 && s.Format == "" {
				t.Errorf("%s: a string needs maxLength, enum or format", f.Path)
			}
		case "array":
			if s.MaxItems == nil {
				t.Errorf("%s: a list needs maxItems", f.Path)
			}
		case "integer":
			// The operator writes status; an upper bound there could only cost a write.
			if s.Minimum == nil || f.IsSpec() && s.Maximum == nil {
				t.Errorf("%s: an integer needs a minimum, and under spec a maximum", f.Path)
			}
		case "object":
			free := s.AdditionalProperties != nil || s.XPreserveUnknownFields != nil || len(s.Properties) == 0
			if free && s.MaxProperties == nil {
				t.Errorf("%s: a map or free-form object needs maxProperties", f.Path)
			}
		case "boolean":
		case "":
			if !s.XIntOrString {
				t.Errorf("%s: a field needs a type", f.Path)
			}
			// The text is bounded by maxLength, and the number, of which int64 is the upper bound, by a rule.
			if s.MaxLength == nil || !slices.ContainsFunc(s.XValidations, isMinimumOfInt) {
				t.Errorf("%s: a number or text needs maxLength and a rule that begins with %q", f.Path, minimumOfInt)
			}
		default:
			t.Errorf("%s: type %q has no rule in this test", f.Path, s.Type)
		}
	})
}

// minimumOfInt begins a rule of a field that is a number or a text.
const minimumOfInt = "type(self) == int ? self >= 0 : "

func isMinimumOfInt(rule apiextensionsv1.ValidationRule) bool {
	return strings.HasPrefix(rule.Rule, minimumOfInt)
}

// TestOnlyStatusHasADefault: what the server writes into spec differs from what stands in Git, which GitOps tools
// report as drift.
func TestOnlyStatusHasADefault(t *testing.T) {
	// Without conditions kstatus takes an object that nobody has looked at yet for one that is done.
	const pending = `{"conditions":[{"lastTransitionTime":"1970-01-01T00:00:00Z","message":"Waiting for the operator",` +
		`"reason":"Pending","status":"Unknown","type":"Ready"}]}`
	for kind, crd := range readCRDs(t) {
		got := map[string]string{}
		for _, f := range crd.Fields() {
			if f.Schema.Default != nil {
				got[f.Path] = string(f.Schema.Default.Raw)
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
	eachField(t, func(t *testing.T, f schema.Field) {
		if f.Schema.Type != "array" {
			return
		}
		want := "atomic"
		if f.Path == "status.conditions" {
			want = "map"
		}
		if got := ptr.Deref(f.Schema.XListType, "unset"); got != want {
			t.Errorf("%s: list type %s, want %s", f.Path, got, want)
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
	eachField(t, func(t *testing.T, f schema.Field) {
		for _, rule := range f.Schema.XValidations {
			if !strings.Contains(rule.Message, "must") && !strings.Contains(rule.Message, "immutable") {
				t.Errorf("%s: rule %s has message %q, which does not say what must be", f.Path, rule.Rule, rule.Message)
			}
			if rule.MessageExpression != "" {
				t.Errorf("%s: a message expression hides the message from the samples", f.Path)
			}
		}
		if f.Schema.Pattern != "" {
			t.Errorf("%s: a pattern answers with a regular expression; write a rule with a message", f.Path)
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
			"the counts of all requests, the largest alternative of each, must add up to at most 32, " +
				"the most devices that one claim can hold",
			"constraints[].requests must name entries of requests, or request/alternative",
			"config[].requests must name entries of requests, or request/alternative",
		},
	}
	got := map[string][]string{}
	for kind, crd := range readCRDs(t) {
		for _, f := range crd.Fields() {
			if f.Path != "" && f.Path != "spec" {
				continue
			}
			for _, rule := range f.Schema.XValidations {
				got[kind] = append(got[kind], rule.Message)
				if f.Path == "" && !ptr.Deref(rule.OptionalOldSelf, false) {
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
		if len(crd.Content) > maxCRDSize {
			t.Errorf("%s: the definition has %d bytes, want at most %d", kind, len(crd.Content), maxCRDSize)
		}
	}
}
