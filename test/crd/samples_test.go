package crd_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestSamples tries every sample at every place that it stands for.
func TestSamples(t *testing.T) {
	server := running(t)
	for _, file := range readSamples(t) {
		t.Run(file.name, func(t *testing.T) {
			for _, s := range file.samples {
				for _, p := range file.places() {
					t.Run(p.kind+": "+s.sentence(), func(t *testing.T) { server.try(t, s, p) })
				}
			}
		})
	}
}

// try writes the sample, without storing it.
func (s *apiServer) try(t *testing.T, sample sample, p place) {
	t.Helper()
	name := sample.Name
	if name == "" {
		name = unique("sample")
	}
	object := build(t, p, name, sample.content())
	want := object.Object["spec"]
	err := s.write(t, object, p, sample)
	if sample.Refused != "" {
		if err := isRefusal(err, p.prefix+sample.Field, sample.Message); err != nil {
			t.Error(err)
		}
		return
	}
	if err != nil {
		t.Errorf("want it accepted: %v", err)
		return
	}
	if diff := cmp.Diff(want, object.Object["spec"]); diff != "" {
		t.Errorf("the server changed spec (-sent +got):\n%s", diff)
	}
}

// write creates the object or, if the sample says what was before, creates that and updates it.
func (s *apiServer) write(t *testing.T, object *unstructured.Unstructured, p place, sample sample) error {
	t.Helper()
	if sample.Before == nil {
		return s.client.Create(t.Context(), object, client.DryRunAll)
	}
	before := build(t, p, object.GetName(), sample.Before)
	s.create(t, before)
	object.SetResourceVersion(before.GetResourceVersion())
	return s.client.Update(t.Context(), object, client.DryRunAll)
}

// create creates an object for the time of the test.
func (s *apiServer) create(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if err := s.client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.remove(t, object) })
}

func build(t *testing.T, p place, name string, content []byte) *unstructured.Unstructured {
	t.Helper()
	object, err := p.object(name, content)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// isRefusal reports whether the server refused an object for what stands in a field, with a message that says so.
func isRefusal(err error, field, message string) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fmt.Errorf("got %v, want a refusal of the server: %s: %s", err, field, message)
	}
	details := status.Status().Details
	if details == nil || len(details.Causes) == 0 {
		// An unknown field is a decoding error, which has a text alone.
		details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: field, Message: err.Error()}}}
	}
	for _, cause := range details.Causes {
		if cause.Field == field && strings.Contains(cause.Message, message) {
			return nil
		}
	}
	return fmt.Errorf("no cause is field %q and says %q: %v", field, message, err)
}

var lastName atomic.Int64

// unique is a name that no other test uses.
func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, lastName.Add(1)) }
