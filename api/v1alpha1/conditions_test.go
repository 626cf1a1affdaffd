package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// constant is an exported string constant of this package.
type constant struct {
	name, value, doc string
}

// constants are the string constants of this package whose names begin with a prefix, wherever they are declared.
func constants(t *testing.T, prefix string) []constant {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []constant
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || general.Tok != token.CONST {
				continue
			}
			for _, spec := range general.Specs {
				found = append(found, constantsOf(t, spec.(*ast.ValueSpec), prefix)...)
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("no constant begins with %s", prefix)
	}
	return found
}

func constantsOf(t *testing.T, spec *ast.ValueSpec, prefix string) []constant {
	t.Helper()
	var found []constant
	for i, name := range spec.Names {
		if !strings.HasPrefix(name.Name, prefix) {
			continue
		}
		literal, ok := spec.Values[i].(*ast.BasicLit)
		if !ok {
			t.Errorf("%s: want a literal", name.Name)
			continue
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Errorf("%s: %v", name.Name, err)
		}
		found = append(found, constant{name.Name, value, strings.TrimSpace(spec.Doc.Text())})
	}
	return found
}

// TestConditionsReasonsAndHazardsAreDocumented: dashboards and alerts are built on these words, so each says what it
// means.
func TestConditionsReasonsAndHazardsAreDocumented(t *testing.T) {
	for _, prefix := range []string{"Condition", "Reason", "Hazard"} {
		owner := map[string]string{}
		for _, c := range constants(t, prefix) {
			if !strings.HasPrefix(c.doc, c.name+" ") || !strings.HasSuffix(c.doc, ".") {
				t.Errorf("%s: want a comment of its own, in sentences, that begins with the name; got %q", c.name, c.doc)
			}
			if c.name != prefix+c.value {
				t.Errorf("%s = %q: want the constant to be called as what it stands for", c.name, c.value)
			}
			if owner[c.value] != "" {
				t.Errorf("%s and %s are both %q", owner[c.value], c.name, c.value)
			}
			owner[c.value] = c.name
		}
	}
}
