// Package v1alpha1 is the API of the gpupool.dev group: GpuPool, a set of devices published as a DeviceClass, and
// WorkloadProfile, what a pod gets, published as a ResourceClaimTemplate in chosen namespaces.
//
// Names and shapes are for good: there is no conversion webhook, so a later version must have the same structure, and
// validation only ever loosens. No rule is added at the root or on spec of a kind after its first release, because such
// a rule would refuse status writes and finalizer removal of objects that were made before it.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package=applyconfiguration
// +groupName=gpupool.dev
package v1alpha1
