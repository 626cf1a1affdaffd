// Package matrix proves that an API server accepts what the operator brings and makes: its CustomResourceDefinitions, the
// samples, and every golden plan. It runs on one Kubernetes version, with the features that the version has switched off
// by default off, and then on. `make matrix-api` runs it on the oldest version that the operator supports and keeps the
// report in docs/matrix-api.md. The package has no code but its tests.
package matrix
