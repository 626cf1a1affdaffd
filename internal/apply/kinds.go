package apply

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kind is how objects of one kind are made, compared and written.
type kind struct {
	new func() client.Object
	// spec is the part that has a meaning besides metadata.
	spec func(client.Object) any
	// immutable is whether the API server refuses changes of the spec.
	immutable bool
}

var kinds = map[schema.GroupVersionKind]kind{
	resourcev1.SchemeGroupVersion.WithKind("DeviceClass"): {
		new:  func() client.Object { return &resourcev1.DeviceClass{} },
		spec: func(o client.Object) any { return o.(*resourcev1.DeviceClass).Spec },
	},
	resourcev1.SchemeGroupVersion.WithKind("ResourceClaimTemplate"): {
		new:       func() client.Object { return &resourcev1.ResourceClaimTemplate{} },
		spec:      func(o client.Object) any { return o.(*resourcev1.ResourceClaimTemplate).Spec },
		immutable: true,
	},
}

// wanted is a Want as the kind's own type, beside the text that states it. The operations of all its namespaces share
// it, so nobody changes it.
type wanted struct {
	kind    kind
	object  client.Object
	content []byte
	digest  [sha256.Size]byte
}

func decode(config runtime.ApplyConfiguration) (*wanted, error) {
	content, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding a wanted object: %w", err)
	}
	var meta metav1.TypeMeta
	if err := json.Unmarshal(content, &meta); err != nil {
		return nil, fmt.Errorf("reading the kind of a wanted object: %w", err)
	}
	k, known := kinds[meta.GroupVersionKind()]
	if !known {
		return nil, fmt.Errorf("objects of kind %s are not written", meta.GroupVersionKind())
	}
	object := k.new()
	if err := json.Unmarshal(content, object); err != nil {
		return nil, fmt.Errorf("reading a wanted %s: %w", meta.Kind, err)
	}
	return &wanted{kind: k, object: object, content: content, digest: sha256.Sum256(content)}, nil
}

// in is a copy of the wanted object for a namespace.
func (w *wanted) in(namespace string) client.Object {
	object := w.object.DeepCopyObject().(client.Object)
	object.SetNamespace(namespace)
	return object
}

// sameSpec says whether an object means what is wanted.
func (w *wanted) sameSpec(object client.Object) bool {
	return meaning.DeepEqual(w.kind.spec(w.object), w.kind.spec(object))
}

// difference says in one word what of the wanted object the present one lacks; empty if nothing.
func (w *wanted) difference(have client.Object) string {
	switch {
	case !w.sameSpec(have):
		return "spec"
	case !containsAll(have.GetLabels(), w.object.GetLabels()):
		return "labels"
	case !containsOwners(have.GetOwnerReferences(), w.object.GetOwnerReferences()):
		return "ownerReferences"
	}
	return ""
}

// meaning compares as the API server reads: quantities and embedded JSON by value.
var meaning = func() conversion.Equalities {
	equalities := equality.Semantic.Copy()
	utilruntime.Must(equalities.AddFunc(equalJSON))
	return equalities
}()

func equalJSON(a, b runtime.RawExtension) bool {
	var left, right any
	if json.Unmarshal(a.Raw, &left) != nil || json.Unmarshal(b.Raw, &right) != nil {
		return string(a.Raw) == string(b.Raw)
	}
	return equality.Semantic.DeepEqual(left, right)
}

func containsAll(have, want map[string]string) bool {
	for key, value := range want {
		if present, ok := have[key]; !ok || present != value {
			return false
		}
	}
	return true
}

func containsOwners(have, want []metav1.OwnerReference) bool {
	for _, w := range want {
		found := false
		for _, h := range have {
			found = found || equality.Semantic.DeepEqual(w, h)
		}
		if !found {
			return false
		}
	}
	return true
}
