// Package plan decides what the operator wants in the cluster: the DeviceClass of a GpuPool and the
// ResourceClaimTemplates of a WorkloadProfile, as server-side apply configurations, or the reason why a spec cannot be
// served. It never returns half a plan.
//
// A plan is a function of the spec, the pools' class names and the driver catalogue only. Devices and claims never
// enter it: a template's spec is immutable, so nothing that moves by itself may change its bytes.
//
// The package is pure: it reads no cluster, and the same inputs give the same bytes. Package snapshot fills its inputs,
// package apply writes what it wants.
package plan
