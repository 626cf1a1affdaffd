package crd_test

import (
	"errors"
	"fmt"
	"slices"
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
				for _, p := range file.about().places {
					t.Run(p.kind+" "+p.path+": "+s.sentence(), func(t *testing.T) { server.try(t, s, p, file.about()) })
				}
			}
		})
	}
}

// try writes the sample, without storing it.
func (s *apiServer) try(t *testing.T, sample sample, p place, about subject) {
	t.Helper()
	name := sample.Name
	if name == "" {
		name = unique("sample")
	}
	object := build(t, p, name, sample.content())
	want := object.Object["spec"]
	err := s.write(t, object, p, sample)
	if sample.Refused != "" {
		if err := isRefusal(err, about.field(p, sample.Field), sample.Message); err != nil {
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

// isRefusal returns an error unless the server refused an object for what stands in a field, and said so.
func isRefusal(err error, field, message string) error {
	if err == nil {
		return fmt.Errorf("it was accepted, want it refused: %s: %s", field, message)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fmt.Errorf("it was not the server that refused: %w", err)
	}
	if strings.Contains(err.Error(), "evaluating rule") {
		return fmt.Errorf("a rule fails instead of saying what must be: %w", err)
	}
	var causes []metav1.StatusCause
	if details := status.Status().Details; details != nil {
		causes = details.Causes
	}
	if slices.ContainsFunc(causes, func(cause metav1.StatusCause) bool {
		return cause.Field == field && strings.Contains(cause.Message, message)
	}) {
		return nil
	}
	// An unknown field is a decoding error, which has no causes but a text.
	if text := err.Error(); len(causes) == 0 && strings.Contains(text, field) && strings.Contains(text, message) {
		return nil
	}
	return fmt.Errorf("no cause is field %q and says %q: %w", field, message, err)
}

var lastName atomic.Int64

// unique is a name that no other test uses.
func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, lastName.Add(1)) }
