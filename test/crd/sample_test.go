package crd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	Devices json.RawMessage `json:"devices"` // the folder says which of these it is
	Source  json.RawMessage `json:"source"`
	Opaque  json.RawMessage `json:"opaque"`

	Field   string `json:"field"`
	Message string `json:"message"`
}

func (s sample) sentence() string { return s.Accepted + s.Refused }

// content is what the sample says about its subject, nil for nothing.
func (s sample) content() json.RawMessage {
	for _, said := range s.said() {
		return said
	}
	return nil
}

// said are the words under which the sample says something.
func (s sample) said() map[string]json.RawMessage {
	said := map[string]json.RawMessage{"spec": s.Spec, "devices": s.Devices, "source": s.Source, "opaque": s.Opaque}
	maps.DeleteFunc(said, func(_ string, content json.RawMessage) bool { return content == nil })
	return said
}

// validate refuses a sample that does not say what it is to show.
func (s sample) validate(about subject) error {
	said := slices.Collect(maps.Keys(s.said()))
	switch {
	case (s.Accepted == "") == (s.Refused == ""):
		return errors.New("want accepted or refused")
	case s.Refused != "" && (s.Field == "" || s.Message == ""):
		return errors.New("want field and message of what is refused")
	case s.Accepted != "" && s.Field+s.Message != "":
		return errors.New("what is accepted has neither field nor message")
	case about.word == "spec" && len(said) == 0:
		return nil // it is about the name
	case !slices.Equal(said, []string{about.word}):
		return fmt.Errorf("it says something about %v, want %s", said, about.word)
	}
	return nil
}

// smallest are the smallest legal specs of the kinds.
var smallest = map[string]string{
	v1alpha1.GpuPoolKind:         `{"driver": {"name": "gpu.example.com"}}`,
	v1alpha1.WorkloadProfileKind: `{"namespaces": {"names": ["team-a"]}, "requests": [{"name": "gpu", "exactly": {"poolName": "h100"}}]}`,
}

// subject is what the samples of a folder are about.
type subject struct {
	// word is the key of what the samples say, and the first word of the fields that they name.
	word   string
	places []place
}

// place is where a subject stands.
type place struct {
	kind string
	// path is the field that the subject's word stands for.
	path string
	// around is the spec, with %s for what the sample says.
	around string
	// beside is what the place wants beside what the sample says; empty for nothing.
	beside string
}

var subjects = map[string]subject{
	"gpupool":         {word: "spec", places: []place{{kind: v1alpha1.GpuPoolKind, path: "spec", around: "%s"}}},
	"workloadprofile": {word: "spec", places: []place{{kind: v1alpha1.WorkloadProfileKind, path: "spec", around: "%s"}}},
	"deviceselector": {word: "devices", places: []place{
		{kind: v1alpha1.GpuPoolKind, path: "spec.devices", around: `{"devices": %s}`},
		{
			kind: v1alpha1.WorkloadProfileKind, path: "spec.requests[0].exactly.devices",
			around: `{"requests": [{"name": "gpu", "exactly": {"poolName": "h100", "devices": %s}}]}`,
		},
		{
			kind: v1alpha1.WorkloadProfileKind, path: "spec.requests[0].firstAvailable[1].devices",
			around: `{"requests": [{"name": "gpu", "firstAvailable": [` +
				`{"name": "first", "poolName": "l4"}, {"name": "second", "poolName": "h100", "devices": %s}]}]}`,
		},
	}},
	"devicesource": {word: "source", places: []place{
		{
			kind: v1alpha1.WorkloadProfileKind, path: "spec.requests[0].exactly",
			around: `{"requests": [{"name": "gpu", "exactly": %s}]}`,
		},
		{
			kind: v1alpha1.WorkloadProfileKind, path: "spec.requests[0].firstAvailable[1]",
			around: `{"requests": [{"name": "gpu", "firstAvailable": [{"name": "first", "poolName": "l4"}, %s]}]}`,
			beside: `{"name": "second"}`,
		},
	}},
	"opaquedeviceconfig": {word: "opaque", places: []place{
		{
			kind: v1alpha1.GpuPoolKind, path: "spec.deviceClass.config[0].opaque",
			around: `{"deviceClass": {"config": [{"opaque": %s}]}}`,
		},
		{kind: v1alpha1.WorkloadProfileKind, path: "spec.config[0].opaque", around: `{"config": [{"opaque": %s}]}`},
	}},
}

// field is the field that a sample names, at a place of its subject.
func (s subject) field(p place, named string) string {
	if rest, found := strings.CutPrefix(named, s.word); found {
		return p.path + rest
	}
	return named
}

// sampleFile is a file under samples.
type sampleFile struct {
	// name is folder/file without the extension.
	name    string
	samples []sample
}

func (f sampleFile) about() subject { return subjects[filepath.Dir(f.name)] }

// object is the object of a sample: what it says laid over the smallest legal spec.
func (p place) object(name string, said json.RawMessage) (*unstructured.Unstructured, error) {
	merged := []byte(smallest[p.kind])
	if said != nil {
		var err error
		if p.beside != "" {
			if said, err = jsonpatch.MergePatch([]byte(p.beside), said); err != nil {
				return nil, err
			}
		}
		if merged, err = jsonpatch.MergePatch(merged, fmt.Appendf(nil, p.around, said)); err != nil {
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
	if file.about().places == nil {
		return file, errors.New("the folder is no subject")
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
	var accepted, refused int
	for _, s := range f.samples {
		if err := s.validate(f.about()); err != nil {
			return fmt.Errorf("%q: %w", s.sentence(), err)
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

// expand writes out {times, text}, {times, item} in lists and {times, field} in objects.
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
		fields := map[string]any{}
		for name, value := range node {
			times, copied, ok := repeated(value, "field")
			if !ok {
				fields[name] = expand(value)
			}
			for i := range times {
				fields[fmt.Sprintf("%s%d", name, i)] = expand(copied)
			}
		}
		return fields
	}
	return tree
}

// repeated takes {times, <what>} apart. It returns no times for everything else.
func repeated(tree any, what string) (times int, content any, ok bool) {
	node, isMap := tree.(map[string]any)
	if !isMap || len(node) != 2 || node["times"] == nil || node[what] == nil {
		return 0, nil, false
	}
	return int(node["times"].(float64)), node[what], true
}
