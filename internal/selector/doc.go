// Package selector builds, compiles and evaluates DRA device selectors: CEL expressions over the variable `device`.
//
// What it builds holds three promises, whatever a driver publishes and whatever a user typed:
//
//   - It never fails at run time. A selector that fails on one device makes the scheduler refuse every pod of the class
//     on every node, so a missing name and a value of another type both just do not match.
//   - User text is data. Strings enter as quoted CEL literals, names only where they are attribute names.
//   - Its estimated cost is bounded and small, so that the API server accepts it
//     (resource.k8s.io/v1 CELSelectorExpressionMaxCost).
//
// The forms were chosen by running them through the scheduler's compiler, k8s.io/dynamic-resource-allocation/cel:
// comparing a version with a value of another type is an error there, and so is looking one up in a constant list,
// while `type(v) in [string]` is safe and cheap (the obvious `type(v) == string` has an unbounded cost estimate).
//
// The package is pure: no client, clock or log. It knows CEL and DRA's device model, and nothing of pools or vendors.
package selector
