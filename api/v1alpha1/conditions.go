package v1alpha1

// Condition types. Every condition of a kind is set on every reconcile, Unknown included, with observedGeneration;
// Reconciling and Stalled are present only while true, and never together (kstatus conventions).
const (
	// ConditionAccepted says whether the spec can be served. While it is not True nothing is written and nothing is
	// pruned: the children of the last accepted spec stay.
	ConditionAccepted = "Accepted"
	// ConditionClassPublished says whether the pool's DeviceClass exists as the spec wants it.
	ConditionClassPublished = "ClassPublished"
	// ConditionDriverReady says whether the driver publishes ResourceSlices on enough of the pool's nodes.
	ConditionDriverReady = "DriverReady"
	// ConditionInventoryComplete says whether every resource pool of the driver on the pool's nodes is complete. It does
	// not enter Ready: a node that republishes its devices is normal.
	ConditionInventoryComplete = "InventoryComplete"
	// ConditionDevicesFound says whether any device of the driver on the pool's nodes is as spec.devices wants it. It does
	// not enter Ready: hardware may still come.
	ConditionDevicesFound = "DevicesFound"
	// ConditionTemplatesPublished says whether every selected namespace has the profile's current template.
	ConditionTemplatesPublished = "TemplatesPublished"
	// ConditionReady sums up: Accepted, ClassPublished and DriverReady of a GpuPool; Accepted and TemplatesPublished of a
	// WorkloadProfile. Inventory and allocation never enter it: a full cluster is healthy.
	ConditionReady = "Ready"
	// ConditionReconciling is present and True while the operator works or waits for something that may still come.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is present and True while only a user can mend what is wrong.
	ConditionStalled = "Stalled"
)

// Reasons of Accepted.
const (
	// ReasonAccepted means that the spec can be served.
	ReasonAccepted = "Accepted"
	// ReasonInvalidSelector means that a CEL expression does not compile, costs more than Kubernetes allows in a device
	// selector, or is not a bool. The user must correct it.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonUnknownDeviceProperty means that the operator does not know how the driver publishes a neutral field that the
	// spec uses. The user must say it with devices.attributes or devices.selectors instead.
	ReasonUnknownDeviceProperty = "UnknownDeviceProperty"
	// ReasonDeviceClassNameRequired means that the driver looks at the name of the DeviceClass, and that the pool must be
	// deleted and created with the deviceClass.name that the message gives.
	ReasonDeviceClassNameRequired = "DeviceClassNameRequired"
	// ReasonAllocationModeRequired means that a claim on devices of the driver must use the allocationMode that the
	// message gives. The user must set it.
	ReasonAllocationModeRequired = "AllocationModeRequired"
	// ReasonParametersTooLarge means that the parameters of a config have more than the 10 KiB that Kubernetes allows. The
	// user must shorten them.
	ReasonParametersTooLarge = "ParametersTooLarge"
	// ReasonTemplateTooLarge means that the rendered ResourceClaimTemplate is larger than the API server stores. The user
	// must shorten selectors or config.
	ReasonTemplateTooLarge = "TemplateTooLarge"
	// ReasonPoolNotFound means that a request names a GpuPool that does not exist. It heals when the pool comes.
	ReasonPoolNotFound = "PoolNotFound"
	// ReasonPoolNotPublished means that the DeviceClass of a GpuPool that a request names is not published yet. It heals
	// when that pool is.
	ReasonPoolNotPublished = "PoolNotPublished"
)

// Reasons of ClassPublished and TemplatesPublished.
const (
	// ReasonPublished means that what the spec wants is there.
	ReasonPublished = "Published"
	// ReasonNameTaken means that an object of that name exists and belongs to somebody else. Nothing is written. The user
	// must delete that object or choose another name.
	ReasonNameTaken = "NameTaken"
	// ReasonExtendedResourceNameTaken means that another DeviceClass holds deviceClass.extendedResourceName. The class is
	// published without the name. The user must choose another name, or free it.
	ReasonExtendedResourceNameTaken = "ExtendedResourceNameTaken"
	// ReasonContended means that somebody else keeps changing an object that the operator writes. The operator corrects it
	// with growing delays.
	ReasonContended = "Contended"
	// ReasonApplyFailed means that the API server refused or failed a write. The operator retries with backoff.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonSuspended means that spec.suspend is true and that what is published differs from what the spec wants.
	ReasonSuspended = "Suspended"
	// ReasonNotAccepted means that the spec is not accepted, so that this cannot be judged; see Accepted.
	ReasonNotAccepted = "NotAccepted"
	// ReasonFeatureUnavailable means that the API server drops a part of what the spec asks for, because a feature is
	// switched off or not known there. A template is not written then, since pods would get something else than they ask
	// for; a DeviceClass is published without the part.
	ReasonFeatureUnavailable = "FeatureUnavailable"
	// ReasonOutOfDate means that template.updatePolicy is OnDelete and that published templates are older than the spec.
	// They stay until somebody deletes them.
	ReasonOutOfDate = "OutOfDate"
	// ReasonAdminAccessNotAllowed means that a selected namespace lacks the label that allows adminAccess. The user must
	// label it, or select other namespaces.
	ReasonAdminAccessNotAllowed = "AdminAccessNotAllowed"
	// ReasonNoNamespaces means that spec.namespaces selects no namespace; there is nothing to publish.
	ReasonNoNamespaces = "NoNamespaces"
	// ReasonNamespaceNotFound means that a namespace that spec.namespaces.names lists does not exist. It heals when the
	// namespace comes.
	ReasonNamespaceNotFound = "NamespaceNotFound"
	// ReasonForbidden means that the operator may not write templates in a namespace, or an admission policy refused one.
	// The user must grant it or change the policy.
	ReasonForbidden = "Forbidden"
)

// Reasons of DriverReady.
const (
	// ReasonPublishing means that the driver publishes on at least nodes.minReadyNodes of the selected nodes.
	ReasonPublishing = "Publishing"
	// ReasonNoNodes means that the driver publishes on no selected node, and need not: nodes.minReadyNodes is 0.
	ReasonNoNodes = "NoNodes"
	// ReasonNotPublishing means that nodes are selected and the driver publishes on none of them.
	ReasonNotPublishing = "NotPublishing"
	// ReasonTooFewNodes means that the driver publishes on fewer selected nodes than nodes.minReadyNodes.
	ReasonTooFewNodes = "TooFewNodes"
)

// Reasons of InventoryComplete.
const (
	// ReasonComplete means that every resource pool in scope has as many ResourceSlices of its newest generation as it
	// announces, and is valid.
	ReasonComplete = "Complete"
	// ReasonIncomplete means that a resource pool in scope is being republished or is invalid. Its devices are not
	// counted, as the scheduler does not allocate from it.
	ReasonIncomplete = "Incomplete"
	// ReasonSyncing means that the operator has not yet read the cluster's ResourceSlices, ResourceClaims and Nodes once.
	ReasonSyncing = "Syncing"
)

// Reasons of DevicesFound.
const (
	// ReasonFound means that at least one device is as spec.devices wants it.
	ReasonFound = "Found"
	// ReasonNoMatchingDevice means that the driver publishes devices on the selected nodes and none is as spec.devices
	// wants it, or that it publishes none. status.excluded says which field keeps them out.
	ReasonNoMatchingDevice = "NoMatchingDevice"
)

// Hazards of a WorkloadProfile, in status.hazards.
const (
	// HazardTakesWholeDevice is a request on shared devices that names no amount of a capacity of which the driver's
	// default takes all. Claims of the profile then share no device.
	HazardTakesWholeDevice = "TakesWholeDevice"
)

// Reasons of Ready, Reconciling and Stalled. A False or Unknown Ready otherwise carries the reason of the first
// condition that is not True.
const (
	// ReasonReady means that all conditions that Ready sums up are True.
	ReasonReady = "Ready"
	// ReasonPending is what the API server writes before the operator has seen the object.
	ReasonPending = "Pending"
	// ReasonDeleting means that the object is being deleted.
	ReasonDeleting = "Deleting"
)
