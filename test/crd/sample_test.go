package crd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

// sample is one entry of a file under samples; the package comment explains it.
type sample struct {
	Accepted string `json:"accepted"`
	Refused  string `json:"refused"`

	Name    string          `json:"name"`
	Before  json.RawMessage `json:"before"`
	Spec    json.RawMessage `json:"spec"`
	Devices json.RawMessage `json:"devices"` // in the folder deviceselector, and there instead of spec

	Field   string `json:"field"`
	Message string `json:"message"`
}

func (s sample) sentence() string { return s.Accepted + s.Refused }

// content is what the sample says about its subject, nil for nothing.
func (s sample) content() json.RawMessage {
	if s.Devices != nil {
		return s.Devices
	}
	return s.Spec
}

// validate refuses a sample that does not say what it is to show.
func (s sample) validate() error {
	switch {
	case (s.Accepted == "") == (s.Refused == ""):
		return errors.New("want accepted or refused")
	case s.Refused != "" && (s.Field == "" || s.Message == ""):
		return errors.New("want field and message of what is refused")
	case s.Accepted != "" && s.Field+s.Message != "":
		return errors.New("what is accepted has neither field nor message")
	}
	return nil
}

// smallest are the smallest legal specs of the kinds.
var smallest = map[string]string{
	v1alpha1.GpuPoolKind:         `{"driver": {"name": "gpu.example.com"}}`,
	v1alpha1.WorkloadProfileKind: `{"namespaces": {"names": ["team-a"]}, "requests": [{"name": "gpu", "exactly": {"poolName": "h100"}}]}`,
}

// place is where the samples of a folder are tried.
type place struct {
	kind string
	// prefix is what stands before the fields of the samples.
	prefix string
	// around is the spec, with %s for what the sample says.
	around string
}

var places = map[string][]place{
	"gpupool":         {{kind: v1alpha1.GpuPoolKind, around: "%s"}},
	"workloadprofile": {{kind: v1alpha1.WorkloadProfileKind, around: "%s"}},
	"deviceselector": {
		{kind: v1alpha1.GpuPoolKind, prefix: "spec.", around: `{"devices": %s}`},
		{
			kind: v1alpha1.WorkloadProfileKind, prefix: "spec.requests[0].exactly.",
			around: `{"requests": [{"name": "gpu", "exactly": {"poolName": "h100", "devices": %s}}]}`,
		},
	},
}

// sampleFile is a file under samples.
type sampleFile struct {
	// name is folder/file without the extension.
	name    string
	samples []sample
}

func (f sampleFile) places() []place { return places[filepath.Dir(f.name)] }

// object is the object of a sample: the spec laid over the smallest legal one.
func (p place) object(name string, spec json.RawMessage) (*unstructured.Unstructured, error) {
	merged := []byte(smallest[p.kind])
	if spec != nil {
		var err error
		if merged, err = jsonpatch.MergePatch(merged, fmt.Appendf(nil, p.around, spec)); err != nil {
			return nil, err
		}
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(p.kind))
	object.SetName(name)
	var content map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(merged, &content); err != nil {
		return nil, err
	}
	return object, unstructured.SetNestedMap(object.Object, content, "spec")
}

func readSamples(t *testing.T) []sampleFile {
	t.Helper()
	paths, err := filepath.Glob("samples/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatal("no samples")
	}
	files := make([]sampleFile, 0, len(paths))
	for _, path := range paths {
		file, err := readSampleFile(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		files = append(files, file)
	}
	return files
}

func readSampleFile(path string) (sampleFile, error) {
	file := sampleFile{name: strings.TrimSuffix(strings.TrimPrefix(path, "samples/"), ".yaml")}
	if file.places() == nil {
		return file, errors.New("the folder is not a kind")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return file, err
	}
	var tree any
	if err := yaml.UnmarshalStrict(content, &tree); err != nil {
		return file, err
	}
	if content, err = json.Marshal(expand(tree)); err != nil {
		return file, err
	}
	strict, err := kjson.UnmarshalStrict(content, &file.samples)
	if err := errors.Join(append(strict, err)...); err != nil {
		return file, err
	}
	return file, file.validate()
}

// validate refuses a file that shows only one side of its subject, or has samples that do not show anything.
func (f sampleFile) validate() error {
	isSelector := filepath.Dir(f.name) == "deviceselector"
	var accepted, refused int
	for _, s := range f.samples {
		if err := s.validate(); err != nil {
			return fmt.Errorf("%q: %w", s.sentence(), err)
		}
		if (s.Devices != nil) != isSelector || (s.Spec != nil) && isSelector {
			return fmt.Errorf("%q: want devices under deviceselector, and spec elsewhere", s.sentence())
		}
		if s.Accepted != "" {
			accepted++
		} else {
			refused++
		}
	}
	if accepted == 0 || refused == 0 {
		return errors.New("want accepted and refused samples")
	}
	return nil
}

// expand writes out {times, text} and, in lists, {times, item}.
func expand(tree any) any {
	switch node := tree.(type) {
	case []any:
		items := []any{}
		for _, item := range node {
			if times, copied, ok := repeated(item, "item"); ok {
				items = append(items, slices.Repeat([]any{expand(copied)}, times)...)
			} else {
				items = append(items, expand(item))
			}
		}
		return items
	case map[string]any:
		if times, text, ok := repeated(node, "text"); ok {
			return strings.Repeat(text.(string), times)
		}
		for key, value := range node {
			node[key] = expand(value)
		}
	}
	return tree
}

func repeated(tree any, what string) (times int, content any, ok bool) {
	node, isMap := tree.(map[string]any)
	if !isMap || len(node) != 2 || node["times"] == nil || node[what] == nil {
		return 0, nil, false
	}
	return int(node["times"].(float64)), node[what], true
}
