//go:build tools

// Package kwok pins kwok, which plays the kubelet of simulated nodes.
package kwok

import (
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
