// Package fakedriver simulates a DRA driver on the nodes of a cluster: what its kubelet plugins publish, and what a
// kubelet does with them.
//
// The driver publishes ResourceSlices made from shapes (see Shape) for the nodes on which it is alive. In mode
// WhileDriverPodReady it is alive where a pod of it is Ready, so a DaemonSet decides; in mode Always it is alive on
// every node that it serves. Where it is no longer alive its slices are withdrawn after a while, as a kubelet does.
//
// A pod that uses a device of the driver gets the finalizer <driver>/prepared on a node where the driver is alive.
// It stands for devices that are prepared: only the driver, and only while it is alive on that node, takes it off
// again, after the pod has ended or was deleted. A pod whose driver was taken away first therefore cannot go, which is
// what happens on a real node.
//
// The methods of Driver make states that drivers reach seldom and tests need: pools that are published by half, a
// generation bump with a pause in the middle, taints, devices that vanish while they are allocated.
//
// The package must not be imported by the product.
package fakedriver
