// Package controllers drives the flow, which goes one way:
//
//	watch            snapshot            plan            apply              status
//	this package --> internal/snapshot-> internal/plan-> internal/apply --> internal/status --> this package
//	(keys only)      (the only reader)   (pure)          (the only writer   (pure)              (writes it once,
//	                                                      of children)                           then events)
//
//	slices, claims, pods, nodes, taint rules --> internal/source --> internal/inventory --> internal/status
//
// Reconcilers here are tables of contents: no rule of the domain stands in them. They decide from what is there now,
// never from which event came nor from a condition that was written before.
package controllers
