package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Owner is whose objects are written: the object of Kind called Name, whose children carry Labels.
type Owner struct {
	Kind   string
	Name   string
	Labels map[string]string
}

// Owns says whether an object is the owner's, which its labels decide, whatever the UID in its owner reference: objects
// that were restored from a backup, or whose owner was deleted and made again, are adopted.
func (o Owner) Owns(object client.Object) bool {
	return containsAll(object.GetLabels(), o.Labels)
}

// Want is an object that should exist.
type Want struct {
	// Config states the whole object.
	Config runtime.ApplyConfiguration
	// Namespaced is whether the kind has namespaces. If so, Namespaces are where the object should exist, and the
	// namespace in Config is not used.
	Namespaced bool
	Namespaces []string
	// KeepOld leaves an object with another spec where it is, for kinds whose spec is immutable.
	KeepOld bool
}

// Ref identifies an object.
type Ref struct {
	Kind schema.GroupVersionKind
	types.NamespacedName
}

func (r Ref) String() string {
	return fmt.Sprintf("%s %s", r.Kind.Kind, strings.TrimPrefix(r.NamespacedName.String(), "/"))
}

// Action is what an Operation does.
type Action string

// Actions. Only the first four send requests.
const (
	Create  Action = "Create"
	Update  Action = "Update"
	Replace Action = "Replace"
	Delete  Action = "Delete"
	// Keep means that the object is as wanted.
	Keep Action = "Keep"
	// Refuse means that somebody else's object has the wanted name.
	Refuse Action = "Refuse"
	// Leave means that an object with an older spec stays until somebody deletes it.
	Leave Action = "Leave"
	// Wait means that an object of the wanted name is being deleted.
	Wait Action = "Wait"
)

// Operation is what one object needs to be as wanted.
type Operation struct {
	Ref
	Action Action
	// Difference names the part of the object that differs, for Update and Replace.
	Difference string

	want *wanted
	have client.Object
}

// base is the version of the object that was compared; empty if there was none.
func (o Operation) base() string {
	if o.have == nil {
		return ""
	}
	return o.have.GetResourceVersion()
}

// Compute compares what an owner wants with what is there. Objects of the owner that are not wanted are to be deleted.
// The order of operations is that of wants and their namespaces, deletions last.
func Compute(owner Owner, wants []Want, have []client.Object) ([]Operation, error) {
	present := make(map[Ref]client.Object, len(have))
	for _, object := range have {
		ref, err := refOf(object)
		if err != nil {
			return nil, err
		}
		present[ref] = object
	}
	var operations []Operation
	for _, want := range wants {
		shared, err := decode(want.Config)
		if err != nil {
			return nil, err
		}
		gvk, name := shared.object.GetObjectKind().GroupVersionKind(), shared.object.GetName()
		namespaces := want.Namespaces
		if !want.Namespaced {
			namespaces = []string{""}
		}
		for _, namespace := range namespaces {
			ref := Ref{gvk, types.NamespacedName{Namespace: namespace, Name: name}}
			operation := compare(owner, ref, shared, present[ref])
			if operation.Action == Replace && want.KeepOld {
				operation.Action = Leave
			}
			operations = append(operations, operation)
			delete(present, ref)
		}
	}
	return append(operations, prune(owner, present)...), nil
}

func compare(owner Owner, ref Ref, want *wanted, have client.Object) Operation {
	operation := Operation{Ref: ref, want: want, have: have}
	switch {
	case have == nil:
		operation.Action = Create
	case !owner.Owns(have):
		operation.Action = Refuse
	case have.GetDeletionTimestamp() != nil:
		operation.Action = Wait
	default:
		operation.Difference = want.difference(have)
		switch {
		case operation.Difference == "":
			operation.Action = Keep
		case operation.Difference == "spec" && want.kind.immutable:
			operation.Action = Replace
		default:
			operation.Action = Update
		}
	}
	return operation
}

func prune(owner Owner, rest map[Ref]client.Object) []Operation {
	var operations []Operation
	for ref, object := range rest {
		if owner.Owns(object) && object.GetDeletionTimestamp() == nil {
			operations = append(operations, Operation{Ref: ref, Action: Delete, have: object})
		}
	}
	slices.SortFunc(operations, func(a, b Operation) int { return strings.Compare(a.String(), b.String()) })
	return operations
}

func refOf(object client.Object) (Ref, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return Ref{}, fmt.Errorf("finding the kind of a present object: %w", err)
	}
	return Ref{gvk, client.ObjectKeyFromObject(object)}, nil
}
