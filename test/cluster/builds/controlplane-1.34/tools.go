//go:build tools

// Package controlplane pins etcd and the three servers of a Kubernetes control plane.
package controlplane

import (
	_ "go.etcd.io/etcd/server/v3"

	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
