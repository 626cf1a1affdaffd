package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

// ChildLabels say whose an object is: whoever carries them all is a child of the GpuPool or WorkloadProfile that
// ownerLabel stands for. Labels of the owner are never copied: GitOps tools would track and prune children by them.
func ChildLabels(ownerLabel, owner string) map[string]string {
	return map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue, ownerLabel: owner}
}

// ownerReference lets Kubernetes delete a child with its owner. It does not block the owner's deletion, which would
// need the right to update the owner's finalizers.
func ownerReference(kind, name string, uid types.UID) *metaac.OwnerReferenceApplyConfiguration {
	return metaac.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).
		WithKind(kind).
		WithName(name).
		WithUID(uid).
		WithController(true)
}

// Owned says whether an object is a child of the GpuPool or WorkloadProfile that ownerLabel stands for.
func Owned(object metav1.Object, ownerLabel, owner string) bool {
	labels := object.GetLabels()
	return labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByValue && labels[ownerLabel] == owner
}
