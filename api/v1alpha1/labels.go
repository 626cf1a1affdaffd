package v1alpha1

// Labels that say whose an object is. An object that carries ManagedByLabel with ManagedByValue and one of PoolLabel
// and ProfileLabel belongs to the GpuPool or WorkloadProfile of that name, whatever the UID of its owner: objects
// restored from a backup, or whose owner was deleted and made again, are adopted. Nothing else is ever changed or
// deleted.
const (
	// ManagedByLabel is the Kubernetes recommended label that names the tool that manages an object.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedByValue is the value of ManagedByLabel on every object that the operator writes.
	ManagedByValue = "gpupool-operator"
	// PoolLabel is the name of the GpuPool that an object was written for.
	PoolLabel = "gpupool.dev/pool"
	// ProfileLabel is the name of the WorkloadProfile that an object was written for. It is also the one label on the
	// ResourceClaims that Kubernetes makes from the profile's template. Tenants may forge it on claims of their own, so
	// it attributes claims to a profile and never decides how many devices are counted.
	ProfileLabel = "gpupool.dev/profile"
)

// Field managers of the operator's server-side applies. There is one writer of children and one writer of status.
const (
	// FieldManager writes DeviceClasses and ResourceClaimTemplates.
	FieldManager = "gpupool-operator"
	// StatusFieldManager writes the whole status of both kinds.
	StatusFieldManager = "gpupool-operator-status"
)

// PoolNameMaxLength is the longest metadata.name of a GpuPool: "<name>.gpupool.dev" must be a label-length class name.
const PoolNameMaxLength = 48

// DefaultDeviceClassSuffix follows a pool's name in the name of its DeviceClass when spec.deviceClass.name is unset.
const DefaultDeviceClassSuffix = ".gpupool.dev"
