// Package binaries builds the programs of a local Kubernetes cluster from Go modules and keeps them in a cache
// folder outside the checkout.
//
// Each set of programs comes from a nested module under test/cluster/builds whose go.mod and go.sum pin every
// version. The main module never requires these: k8s.io/kubernetes needs replace directives, which would break
// everyone who imports us.
//
// The package starts nothing and downloads no ready-made binary. It must not write into the nested modules: a go.mod
// that is out of date fails the build instead of being mended.
package binaries
