// Package status computes the status of GpuPools and WorkloadProfiles from facts: what is planned, how it stands in
// the cluster, and what is counted. It never decides from a condition that was written before; the present status
// only lends its transition times.
//
// Messages say where to look and what to do. They hold no time, no count and no name of a namespace, pod or claim: a
// status that changes by itself would cost a write each time, and tenants may read it.
//
// The package is pure. The controllers write what it returns.
package status
