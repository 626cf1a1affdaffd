// Package inventory knows which devices a cluster publishes, who holds them, and counts them exactly as the scheduler
// acts on them.
//
// Five kinds of API objects enter as compact forms: ResourceSlices, ResourceClaims, unscheduled Pods, Nodes and
// DeviceTaintRules (FromSlice, FromClaim, FromPod, FromNode, FromTaintRule). They enter through one small method set,
// Inventory.Put, Delete and Replace, each of which returns the Change: the answers that may differ now. Questions are
// PoolCounts and ProfileClaims.
//
// A compact form holds what counting needs and nothing else. What a fleet repeats (names, attributes, capacities) is
// interned, and a put of an object whose compact form is what it was changes nothing: the heartbeat of a node and a new
// label on a claim are free. Compact forms are never changed once they are made; they may be shared freely.
//
// recount.go and its neighbours state the counting rules as pure functions of plain lists. They are the specification:
// whatever computes the answers must equal them.
//
// The package is pure: no client, clock, logger, randomness or panic. It knows DRA, and nothing of pools, profiles or
// vendors: what those mean comes in with a PoolQuery.
package inventory
