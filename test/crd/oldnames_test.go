package crd_test

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// oldName breaks the rule of both kinds.
const oldName = "a-name.from-before-the-rule"

// TestOldNamesStayUsable: an object whose name breaks the rule cannot be made, but one that has such a name already can
// be changed and deleted. It runs on copies of the kinds, which first have no rule at the root and then get it.
func TestOldNamesStayUsable(t *testing.T) {
	server := running(t)
	crds := read(t)
	eachKind(t, func(t *testing.T, p place) {
		crd := copyOf(crds[p.kind].CustomResourceDefinition)
		t.Cleanup(func() { server.remove(t, crd.DeepCopy()) })
		install := func(crd *apiextensionsv1.CustomResourceDefinition) {
			if err := server.serve(t.Context(), crd); err != nil {
				t.Fatal(err)
			}
		}
		install(withoutRootRules(crd))
		old := ofCopy(build(t, p, oldName, nil), crd)
		old.SetFinalizers([]string{"gpupool.dev/test"})
		if err := server.client.Create(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		install(crd)
		server.awaitRefusal(t, ofCopy(build(t, p, oldName+"-2", nil), crd))

		old.Object["status"] = map[string]any{"observedGeneration": int64(1)}
		if err := server.client.Status().Update(t.Context(), old); err != nil {
			t.Errorf("writing status: %v", err)
		}
		for what, change := range map[string]func(){
			"labels": func() { old.SetLabels(map[string]string{"team": "research"}) },
			"spec":   func() { old.Object["spec"].(map[string]any)["suspend"] = true },
		} {
			change()
			if err := server.client.Update(t.Context(), old); err != nil {
				t.Errorf("changing %s: %v", what, err)
			}
		}
		server.finish(t, old)
	})
}

// finish deletes an object and then removes its finalizers.
func (s *apiServer) finish(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if err := s.client.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	deleting := s.get(t, object)
	deleting.SetFinalizers(nil)
	if err := s.client.Update(t.Context(), deleting); err != nil {
		t.Errorf("removing finalizers: %v", err)
	}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(object), deleting); !apierrors.IsNotFound(err) {
		t.Errorf("after deletion: %v, want it gone", err)
	}
}

// copyOf is the same kind under names of its own, so that neither users nor other tests meet it.
func copyOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	copied := crd.DeepCopy()
	copied.Spec.Group = "copy." + crd.Spec.Group
	copied.Name = crd.Spec.Names.Plural + "." + copied.Spec.Group
	copied.Spec.Names.ShortNames = nil
	copied.Spec.Names.Categories = nil
	return copied
}

// ofCopy makes an object one of the copied kind.
func ofCopy(
	object *unstructured.Unstructured, crd *apiextensionsv1.CustomResourceDefinition,
) *unstructured.Unstructured {
	object.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
	return object
}

func withoutRootRules(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	without := crd.DeepCopy()
	without.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = nil
	return without
}

// awaitRefusal waits until the server knows the rule: it takes up a changed definition a little later.
func (s *apiServer) awaitRefusal(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), pollPeriod, soon, true, func(ctx context.Context) (bool, error) {
		last = s.client.Create(ctx, object.DeepCopy(), client.DryRunAll)
		return last != nil && strings.Contains(last.Error(), "metadata.name must be a DNS label"), nil
	})
	if err != nil {
		t.Fatalf("creating %s: %v, want it refused for its name", object.GetName(), last)
	}
}
