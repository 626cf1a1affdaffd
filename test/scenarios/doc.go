// Package scenarios proves docs/scenarios: each manifest there is applied as it stands to a real control plane with
// simulated nodes and drivers, workloads are created, and the suite asserts which of them run, where and on which
// devices, and what the operator says of it. What a manifest's comment or the table warns of is tried as well. The
// package has no code but its tests.
//
// The operator runs in the test's process, under the rights that config/rbac gives it. Specs run one after the other,
// since a DeviceClass cannot select nodes: each has nodes, drivers and objects of its own, and finds the cluster empty.
package scenarios
