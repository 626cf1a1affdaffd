package schema

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the kinds of this repository's API, sorted.
var kinds = []string{"GpuPool", "WorkloadProfile"}

// ofKubernetes are the fields that have types of Kubernetes, which describes and bounds their children in its own way.
var ofKubernetes = []string{"apiVersion", "kind", "metadata", "spec.namespaces.selector", "status.conditions[]"}

// CRD is one definition.
type CRD struct {
	*apiextensionsv1.CustomResourceDefinition
	// Content is the file as it stands.
	Content []byte
}

// Read reads the definitions of this repository's API from a folder and returns them by kind. It refuses files with
// fields that a definition does not have, missing and other kinds, and definitions without exactly one version.
func Read(folder string) (map[string]CRD, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	crds := map[string]CRD{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Schema == nil {
			return nil, fmt.Errorf("%s: want one version, with a schema", file)
		}
		crds[crd.Spec.Names.Kind] = CRD{crd, content}
	}
	if found := slices.Sorted(maps.Keys(crds)); !slices.Equal(found, kinds) {
		return nil, fmt.Errorf("%s defines %v, want %v", folder, found, kinds)
	}
	return crds, nil
}

// Field is a place in a schema: the root, a property, or the items of a list.
type Field struct {
	// Path is what users write: spec.requests[].name. It is empty for the root.
	Path string
	// Name is the JSON name of a property, and empty for everything else.
	Name string
	// Schema is what the place must look like.
	Schema apiextensionsv1.JSONSchemaProps
}

// Fields are the root and everything below it, parents first and then by name. Children of Kubernetes' own types are
// left out.
func (c CRD) Fields() []Field {
	return Field{Schema: *c.Spec.Versions[0].Schema.OpenAPIV3Schema}.fields()
}

func (f Field) fields() []Field {
	found := []Field{f}
	if slices.Contains(ofKubernetes, f.Path) {
		return found
	}
	for _, name := range slices.Sorted(maps.Keys(f.Schema.Properties)) {
		child := Field{Path: strings.TrimPrefix(f.Path+"."+name, "."), Name: name, Schema: f.Schema.Properties[name]}
		found = append(found, child.fields()...)
	}
	if items := f.Schema.Items; items != nil && items.Schema != nil {
		found = append(found, Field{Path: f.Path + "[]", Schema: *items.Schema}.fields()...)
	}
	if values := f.Schema.AdditionalProperties; values != nil && values.Schema != nil {
		found = append(found, Field{Path: f.Path + "{}", Schema: *values.Schema}.fields()...)
	}
	return found
}

// IsOfTypeMeta reports whether every Kubernetes object has the field, in the same form.
func (f Field) IsOfTypeMeta() bool {
	return f.Path == "apiVersion" || f.Path == "kind" || f.Path == "metadata"
}

// IsSpec reports whether the field is spec or below it.
func (f Field) IsSpec() bool { return f.Path == "spec" || strings.HasPrefix(f.Path, "spec.") }
