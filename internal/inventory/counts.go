package inventory

// PoolQuery selects devices of one driver and the claims of one DeviceClass.
type PoolQuery struct {
	// Driver is the driver's name, as in ResourceSlice spec.driver.
	Driver string
	// ClassName is the DeviceClass that claims name to get the devices.
	ClassName string
	// Nodes bounds which nodes are counted; nil is all nodes.
	Nodes *NodeMatcher
	// Devices says which devices of the driver are meant; nil is every one.
	Devices DeviceMatcher
	// CardKeys says how devices of the driver name the physical card that they are on. Without keys, only counters tell
	// that two devices share hardware.
	CardKeys CardKeys
	// Model is the attribute that holds a device's product name; empty if nobody wants to know.
	Model string
}

// ShareQuery is a request for parts of shared devices.
type ShareQuery struct {
	// Driver is the driver's name, as in ResourceSlice spec.driver.
	Driver string
	// Devices are the selectors of the class and Narrowing those of the request; nil is every device.
	Devices, Narrowing DeviceMatcher
	// Requested are the capacities of which the request names an amount, as the driver publishes them.
	Requested []string
}

// DeviceMatcher selects devices.
type DeviceMatcher interface {
	// Judge says whether a device of a driver is selected, and if not, why.
	Judge(driver string, device *Device) Verdict
}

// Verdict is what a DeviceMatcher says of a device.
type Verdict struct {
	Matches bool
	// Selector is the index of the first selector that does not match.
	Selector int
	// Value is what the device has of what that selector reads; empty if it has nothing of it.
	Value string
	// Failure is why that selector could not be evaluated. A failure counts as no match, and is counted too: what fails on
	// a device makes the scheduler refuse every pod that uses the class.
	Failure string
}

// Exclusion is how many devices on selected nodes one selector keeps out, with the same value.
type Exclusion struct {
	Selector int
	Value    string
	Failure  string
	Devices  int
}

// CardKeys are names of attributes that name a physical card. A bare name is in the driver's domain.
//
// Two devices of one resource pool, and of one node if each is reachable from one node only, are on the same card if
// any of these attributes, the same or another, has the same value on both. They are then aliases, one card under two
// names, unless both are parts of it or they share counters: parts lie beside each other, and counters say exactly what
// excludes what.
type CardKeys struct {
	// Self are attributes by which a card names itself, such as uuid or resource.kubernetes.io/pciBusID.
	Self []string
	// Parent are attributes by which a part names the card that it is a part of, such as parentUUID. A device that has
	// one is a part.
	Parent []string
}

// PoolCounts is what a PoolQuery counts. All numbers but Nodes.Publishing, ResourcePools and Claims are over complete
// resource pools, from which alone the scheduler allocates.
type PoolCounts struct {
	Nodes         NodeCounts
	ResourcePools ResourcePoolCounts
	// Devices counts the selected devices that a selected node reaches. It is nil when not all of them could be allocated
	// at once on an idle fleet, and a sum of devices means nothing: when together they consume more of a counter than
	// their resource pool has (resource.k8s.io/v1 Device.consumesCounters), or when two of them are aliases (CardKeys).
	Devices *DeviceCounts
	// Models counts the selected devices that a selected node reaches by product name, sorted by name; without those that
	// publish none. It is nil where Devices is.
	Models []ModelCounts
	// Excluded counts the devices of the driver that a selected node reaches and that are not selected, by selector, value
	// and failure, in that order.
	Excluded []Exclusion
	// OutOfScope is how many devices are selected by their properties and reached by no selected node. The class matches
	// them all the same.
	OutOfScope int
	// Orphaned is how many devices are allocated by way of the class and published no more, in a resource pool that is
	// complete or gone. They are in no other number.
	Orphaned int
	// SelectorErrors is on how many devices of the driver, reached by whichever node, DeviceMatcher failed.
	SelectorErrors int
	// Claims counts the claims that name the class.
	Claims ClaimCounts
}

// NodeCounts counts nodes.
type NodeCounts struct {
	// Selected is how many nodes the query selects.
	Selected int
	// Publishing is how many of them reach at least one slice of the driver, of a complete resource pool or not.
	Publishing int
	// WithDevices is how many of them reach at least one selected device.
	WithDevices int
}

// ResourcePoolCounts counts the driver's resource pools that a selected node reaches.
type ResourcePoolCounts struct {
	Total int
	// Incomplete is how many of them are not complete or not valid, IncompleteReasons how many for which reason. Their
	// devices are in no count.
	Incomplete        int
	IncompleteReasons map[IncompleteReason]int
}

// IncompleteReason says why the scheduler allocates nothing from a resource pool. A pool has one: the first that
// applies, in the order in which they stand here.
type IncompleteReason string

// Reasons why a resource pool is incomplete. Only slices of the highest generation are looked at.
const (
	// CountsDisagree is slices that announce different numbers of slices.
	CountsDisagree IncompleteReason = "CountsDisagree"
	// FewerSlices is fewer slices than they announce, as while a driver publishes a new generation.
	FewerSlices IncompleteReason = "FewerSlices"
	// MoreSlices is more slices than they announce.
	MoreSlices IncompleteReason = "MoreSlices"
	// DuplicateDevice is two devices of one name.
	DuplicateDevice IncompleteReason = "DuplicateDevice"
	// DuplicateCounterSet is two counter sets of one name.
	DuplicateCounterSet IncompleteReason = "DuplicateCounterSet"
	// UnknownCounter is a device that consumes a counter set, or a counter of one, that no slice has.
	UnknownCounter IncompleteReason = "UnknownCounter"
)

// DeviceCounts counts devices. Total = Allocated + Available + Unavailable.
type DeviceCounts struct {
	Total int
	// Allocated is how many are named by an allocated claim, by whichever class it asked and whatever became of its pods.
	// A shared device is allocated from its first share on; access for administration allocates nothing.
	Allocated int
	// AllocatedElsewhere is how many of Allocated are held by no request that names the class.
	AllocatedElsewhere int
	// Available is how many of the others a claim without tolerations could get now.
	Available int
	// Unavailable is how many are neither, UnavailableReasons how many for which reason.
	Unavailable        int
	UnavailableReasons map[UnavailableReason]int
}

// ModelCounts counts the devices of one product name.
type ModelCounts struct {
	Name      string
	Total     int
	Allocated int
	Available int
}

// UnavailableReason says why a device that is not allocated cannot be had either. A device has one: the first that
// applies, in the order in which they stand here.
type UnavailableReason string

// Reasons why a device is unavailable.
const (
	// Tainted is a taint NoSchedule or NoExecute, of the slice or of a DeviceTaintRule.
	Tainted UnavailableReason = "Tainted"
	// PartitionInUse is counters that allocated devices have used up.
	PartitionInUse UnavailableReason = "PartitionInUse"
	// Aliased is a card that is allocated under another name. The scheduler does not know, and would hand it out again.
	Aliased UnavailableReason = "Aliased"
	// NodeUnschedulable is a device that no Ready node reaches on which pods may be scheduled, selected or not.
	NodeUnschedulable UnavailableReason = "NodeUnschedulable"
)

// ClaimCounts counts claims.
type ClaimCounts struct {
	// Allocated is how many claims have an allocation, whatever became of their pods.
	Allocated int
	// AdminAccess is how many have an allocation of access for administration only. They are not in Allocated: they take
	// nothing.
	AdminAccess int
	// Pending is how many have none, are not being deleted, and are referred to by a live pod that waits to be placed.
	Pending int
}
