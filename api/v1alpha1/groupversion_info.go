package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "gpupool.dev", Version: "v1alpha1"}

// SchemeGroupVersion is GroupVersion under the name that generated apply configurations look for.
var SchemeGroupVersion = GroupVersion

var schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme adds both kinds to a scheme.
var AddToScheme = schemeBuilder.AddToScheme

// Kinds as they stand in object references and in events.
const (
	GpuPoolKind         = "GpuPool"
	WorkloadProfileKind = "WorkloadProfile"
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &GpuPool{}, &GpuPoolList{}, &WorkloadProfile{}, &WorkloadProfileList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
