package crd_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/gpupool/gpupool-operator/test/crd/schema"
)

// twins are lists whose items have the same type as those of another list, where the type's rules have their samples.
// What is a rule of the list alone still needs its own.
var twins = map[string]string{
	"spec.nodes.selectorTerms[].matchFields[]": "spec.nodes.selectorTerms[].matchExpressions[]",
}

// rule is something that the schema asks of a field.
type rule struct {
	// field is the path that the server names, with [] for any index.
	field string
	// message is what the server says, or what a rule's author wrote.
	message string
}

// TestEveryRuleHasARefusedSample: TestSamples shows that the server says what the samples expect, so it is enough to
// look at what they expect.
func TestEveryRuleHasARefusedSample(t *testing.T) {
	refused := map[string]map[rule]bool{}
	for _, file := range readSamples(t) {
		for _, p := range file.about().places {
			if refused[p.kind] == nil {
				refused[p.kind] = map[rule]bool{}
			}
			for _, s := range file.samples {
				if s.Refused != "" {
					refused[p.kind][rule{anyIndex(file.about().field(p, s.Field)), s.Message}] = true
				}
			}
		}
	}
	for kind, crd := range read(t) {
		t.Run(kind, func(t *testing.T) {
			rules := rulesOf(t, crd)
			if len(rules) < 50 {
				t.Errorf("only %d rules found", len(rules))
			}
			for _, r := range rules {
				if !refused[kind][r] && !refused[kind][rule{twinOf(r.field), r.message}] {
					t.Errorf("no refused sample of %s says %q", r.field, r.message)
				}
			}
		})
	}
}

// TestEveryFieldHasAnAcceptedSample: so does every value of an enum.
func TestEveryFieldHasAnAcceptedSample(t *testing.T) {
	accepted := map[string]map[string]bool{}
	for _, file := range readSamples(t) {
		for _, p := range file.about().places {
			if accepted[p.kind] == nil {
				accepted[p.kind] = map[string]bool{}
			}
			for _, s := range file.samples {
				if s.Accepted != "" {
					note(accepted[p.kind], "spec", build(t, p, "sample", s.content()).Object["spec"])
				}
			}
		}
	}
	for kind, crd := range read(t) {
		t.Run(kind, func(t *testing.T) {
			for _, f := range crd.Fields() {
				if !f.IsSpec() {
					continue
				}
				if !accepted[kind][f.Path] {
					t.Errorf("%s stands in no accepted sample", f.Path)
				}
				for _, value := range enum(t, f.Schema) {
					if !accepted[kind][f.Path+"="+value] && !accepted[kind][twinOf(f.Path)+"="+value] {
						t.Errorf("%s: %s stands in no accepted sample", f.Path, value)
					}
				}
			}
		})
	}
}

// note notes the paths of a tree, and its texts as path=text.
func note(seen map[string]bool, path string, tree any) {
	seen[path] = true
	switch node := tree.(type) {
	case map[string]any:
		for name, child := range node {
			note(seen, path+"."+name, child)
		}
	case []any:
		for _, item := range node {
			note(seen, path+"[]", item)
		}
	case string:
		seen[path+"="+node] = true
	}
}

func read(t *testing.T) map[string]schema.CRD {
	t.Helper()
	crds, err := schema.Read(definitions)
	if err != nil {
		t.Fatal(err)
	}
	return crds
}

// rulesOf are the rules that a user can break: those of the root and of everything in spec.
func rulesOf(t *testing.T, crd schema.CRD) []rule {
	t.Helper()
	var rules []rule
	for _, f := range crd.Fields() {
		if f.Path != "" && !f.IsSpec() {
			continue
		}
		for _, message := range messages(t, f.Schema) {
			rules = append(rules, rule{f.Path, message})
		}
		for _, written := range f.Schema.XValidations {
			field := strings.TrimPrefix(f.Path+written.FieldPath, ".")
			rules = append(rules, rule{field, written.Message})
		}
		if f.Path == "" {
			continue // spec itself is required, and every sample has it
		}
		required := f.Schema.Required
		if f.Schema.XEmbeddedResource { // the server asks for these without being told
			required = append([]string{"apiVersion", "kind"}, required...)
		}
		for _, name := range required {
			rules = append(rules, rule{f.Path + "." + name, "Required value"})
		}
	}
	return rules
}

// messages are what the API server says about each bound of a field that is broken.
func messages(t *testing.T, s apiextensionsv1.JSONSchemaProps) []string {
	t.Helper()
	var said []string
	bound := func(limit *int64, format string) {
		if limit != nil {
			said = append(said, fmt.Sprintf(format, *limit))
		}
	}
	if ptr.Deref(s.MinLength, 0) > 0 { // nothing is shorter than 0
		bound(s.MinLength, "should be at least %d chars long")
	}
	bound(s.MaxLength, "may not be more than %d bytes")
	bound(s.MinItems, "should have at least %d items")
	bound(s.MinProperties, "should have at least %d properties")
	bound(s.MaxProperties, "must have at most %d items")
	if s.MaxItems != nil {
		said = append(said, fmt.Sprintf("must have at most %d item", *s.MaxItems)+strings.Repeat("s", min(1, int(*s.MaxItems-1))))
	}
	if s.Minimum != nil {
		said = append(said, fmt.Sprintf("should be greater than or equal to %v", *s.Minimum))
	}
	if s.Maximum != nil {
		said = append(said, fmt.Sprintf("should be less than or equal to %.0f", *s.Maximum))
	}
	if values := enum(t, s); len(values) > 0 {
		said = append(said, `supported values: "`+strings.Join(values, `", "`)+`"`)
	}
	return said
}

func enum(t *testing.T, s apiextensionsv1.JSONSchemaProps) []string {
	t.Helper()
	values := make([]string, 0, len(s.Enum))
	for _, raw := range s.Enum {
		var value string
		if err := json.Unmarshal(raw.Raw, &value); err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	return values
}

var index = regexp.MustCompile(`\[\d+\]`)

func anyIndex(path string) string { return index.ReplaceAllString(path, "[]") }

// twinOf is the same field of the twin, or the field itself.
func twinOf(field string) string {
	for list, twin := range twins {
		if rest, found := strings.CutPrefix(field, list); found {
			return twin + rest
		}
	}
	return field
}
