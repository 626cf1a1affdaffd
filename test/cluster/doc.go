// Package cluster starts a real Kubernetes control plane on this machine, for tests, the demo and developers.
//
// It runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback ports and lets kwok play the
// kubelet of simulated nodes. The programs are built from pinned Go modules (package binaries); neither a container
// engine nor a ready-made binary is needed. Claims are allocated by the real scheduler and removed by the real
// controllers; only containers and drivers are pretended (package fakedriver plays the drivers).
//
// # Pods on simulated nodes
//
// The folder stages says what kwok does with pods. In short: a bound pod runs and is Ready at once; with the
// annotation test.gpupool.dev/complete-after it completes after that time; a deleted pod stops its containers, then
// gets a terminal phase, then goes. As with a real kubelet the terminal phase waits until every driver has unprepared
// its devices, which finalizers with the name <driver>/prepared stand for, and the pod goes only when it has no
// finalizer at all. Nothing takes a pod back to where it was, so a test may change a pod's status, for example its
// Ready condition, and it stays changed.
//
// # An existing cluster
//
// The environment variable TEST_KUBECONFIG names a kubeconfig file whose cluster is used instead. Start then starts
// nothing and Stop stops nothing. KUBECONFIG and ~/.kube/config are never read, so that no test reaches a cluster by
// accident. Without a control plane of its own a Cluster cannot offer: feature gates, runtime config, an audit
// policy, another Kubernetes version, fewer components, or a data folder (Start refuses these options), and it has no
// audit log. Simulated nodes work if the other cluster was started by this package, as localkube does; a cluster
// without kwok and these stages would never run a pod on them.
//
// The package must not be imported by the product.
package cluster
