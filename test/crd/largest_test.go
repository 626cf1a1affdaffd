package crd_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxRequest is how many bytes a request to the API server may have (k8s.io/apiserver, server.NewConfig).
	maxRequest = 3 << 20
	// maxStored is how many bytes of spec etcd stores safely: it takes 1.5 MiB with all that is around it.
	maxStored = 1400 << 10
	// prompt is how long the API server may think about an object. Measured: 4 s for the largest, on two busy cores.
	prompt = 15 * time.Second
)

// TestLargestObjects: objects at all bounds at once are accepted, if they fit a request. A rule has a price for each
// evaluation, the server stops at a limit for the whole object, and refuses what it has not judged by then. That the
// server took the definitions says little about it: the limit there is for one rule.
func TestLargestObjects(t *testing.T) {
	server := running(t)
	crds := read(t)
	eachKind(t, func(t *testing.T, p place) {
		spec := crds[p.kind].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		t.Run("as large as a request can be", func(t *testing.T) {
			object := build(t, p, unique("largest"), largestBelow(t, spec, maxRequest))
			promptly(t, "creating it", func() error { return server.client.Create(t.Context(), object, client.DryRunAll) })
		})
		t.Run("as large as can be stored", func(t *testing.T) { server.keepLargest(t, p, largestBelow(t, spec, maxStored)) })
		t.Run("larger than a request can be", func(t *testing.T) {
			object := build(t, p, unique("largest"), largest{spec, math.MaxInt}.content(t))
			var err error
			promptly(t, "refusing it", func() error {
				err = server.client.Create(t.Context(), object, client.DryRunAll)
				return nil
			})
			if !apierrors.IsRequestEntityTooLargeError(err) {
				t.Errorf("got %v, want it refused for its size", err)
			}
		})
	})
}

// keepLargest creates an object and changes it in all ways: the rules are judged each time.
func (s *apiServer) keepLargest(t *testing.T, p place, content []byte) {
	t.Helper()
	object := build(t, p, unique("largest"), content)
	t.Cleanup(func() { s.remove(t, object) })
	promptly(t, "creating it", func() error { return s.client.Create(t.Context(), object) })
	promptly(t, "changing spec", func() error {
		object.Object["spec"].(map[string]any)["suspend"] = false
		return s.client.Update(t.Context(), object)
	})
	promptly(t, "changing status", func() error {
		object.Object["status"] = map[string]any{"observedGeneration": int64(1)}
		return s.client.Status().Update(t.Context(), object)
	})
	applied := build(t, p, object.GetName(), content)
	promptly(t, "applying it", func() error {
		return s.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied),
			client.FieldOwner("gitops"), client.ForceOwnership)
	})
}

func promptly(t *testing.T, what string, do func() error) {
	t.Helper()
	begin := time.Now()
	if err := do(); err != nil {
		t.Errorf("%s: %.1000s", what, err)
	}
	took := time.Since(begin)
	t.Logf("%s took %s", what, took.Round(time.Millisecond))
	if took > prompt {
		t.Errorf("%s took %s, want at most %s", what, took, prompt)
	}
}

// largestBelow is the content with the longest texts that has at most so many bytes.
func largestBelow(t *testing.T, spec apiextensionsv1.JSONSchemaProps, bytes int) []byte {
	t.Helper()
	var content []byte
	for low, high := 1, 512; low < high; {
		middle := (low + high + 1) / 2
		if tried := (largest{spec, middle}).content(t); len(tried) <= bytes {
			low, content = middle, tried
		} else {
			high = middle - 1
		}
	}
	if content == nil {
		t.Fatalf("no content has at most %d bytes", bytes)
	}
	return content
}

// largest fills a schema: every field is set, every list full, and every text as long as allowed or as longest says.
type largest struct {
	schema  apiextensionsv1.JSONSchemaProps
	longest int
}

// left are the fields that exclude others which say more.
var left = map[string]bool{
	"spec.requests[].exactly":                          true, // firstAvailable has eight of them
	"spec.requests[].firstAvailable[].deviceClassName": true, // it excludes most of devices
	"spec.constraints[].distinctAttribute":             true,
}

func (l largest) content(t *testing.T) []byte {
	t.Helper()
	content, err := json.Marshal(l.value("spec", l.schema, 0))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// value fills what stands at a path. Entries of a list differ by their index.
func (l largest) value(path string, s apiextensionsv1.JSONSchemaProps, index int) any {
	if chosen := l.chosen(path, s, index); chosen != nil {
		return chosen
	}
	switch s.Type {
	case "object":
		fields := map[string]any{}
		for name, field := range s.Properties {
			if !left[path+"."+name] {
				fields[name] = l.value(path+"."+name, field, index)
			}
		}
		return fields
	case "array":
		items := make([]any, 0, *s.MaxItems)
		for i := range int(*s.MaxItems) {
			items = append(items, l.value(path+"[]", *s.Items.Schema, i))
		}
		return items
	case "integer":
		return int64(*s.Maximum)
	case "boolean":
		return true
	}
	return l.text("", int(*s.MaxLength), index)
}

// text is a text of at most so many letters. It ends in two digits, so that the server finds out late that two texts
// are not the same.
func (l largest) text(prefix string, length, index int) string {
	number := fmt.Sprintf("a%02d", index%100)
	return prefix + strings.Repeat("a", max(0, min(length, l.longest)-len(prefix)-len(number))) + number
}

// domain is a domain of labels of at most 62 letters, with a slash.
func (l largest) domain(length int) string {
	labels := strings.Repeat(strings.Repeat("b", 62)+".", 8)
	return strings.TrimRight(labels[:max(1, min(length, l.longest-64))], ".") + "/"
}

// number is a number of at most so many digits.
func (l largest) number(length int) string {
	return strings.Repeat("1", max(1, min(length, l.longest)))
}

// chosen is what a path holds for which a rule or an enum wants something of its own, and nil for all others.
func (l largest) chosen(path string, s apiextensionsv1.JSONSchemaProps, index int) any {
	is := func(ends ...string) bool {
		for _, end := range ends {
			if strings.HasSuffix(path, end) {
				return true
			}
		}
		return false
	}
	switch {
	case s.XEmbeddedResource:
		option := map[string]any{"times": float64(*s.MaxProperties - 2), "field": true}
		return expand(map[string]any{"apiVersion": "v1", "kind": "Config", "option": option})
	case is("cel.expression"):
		return "true" // no rule looks at it, and it leaves room for texts that rules do look at
	case is("spec.namespaces.selector"):
		return map[string]any{} // a type of Kubernetes, without bounds
	case is("attributes[].operator", "matchExpressions[].operator", "matchFields[].operator"):
		return "In"
	case is("attributes[].type"):
		return "Version"
	case is("tolerations[].operator"):
		return "Equal"
	case is("allocationMode"):
		return "ExactCount"
	case is("firstAvailable[].count"):
		return int64(1) // one claim holds 32 devices
	case is("matchFields[].key"):
		return "metadata.name"
	case is("matchFields[].values"):
		return []any{l.text("", 253, index)}
	case is("constraints[].requests[]", "config[].requests[]"):
		return l.text("", 63, index) + "/" + l.text("", 63, 7) // the last alternative, of each request
	case is("cudaComputeCapability.min", "cudaComputeCapability.max", "gpuDriverVersion.min", "gpuDriverVersion.max",
		"attributes[].values[]"):
		return strings.Join([]string{l.number(9), l.number(9), l.number(9)}, ".")
	case is("memory.min", "memory.max", "capacity[].min", "capacity[].max", "capacityRequests[].amount"):
		return l.number(18) + "Ki"
	case is("attributes[].name", "capacity[].name", "capacityRequests[].name", "matchAttribute"):
		return l.domain(63) + l.text("", 32, index)
	case is("tolerations[].key", "matchExpressions[].key"):
		return l.domain(int(*s.MaxLength)-64) + l.text("", 63, index)
	case is("extendedResourceName"):
		return l.domain(int(*s.MaxLength)-64) + l.text("", 63, index)
	case len(s.Enum) > 0:
		return strings.Trim(string(s.Enum[0].Raw), `"`)
	}
	return nil
}
