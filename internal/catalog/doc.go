// Package catalog holds what the operator knows about each DRA driver, as data: which attribute says what a device is,
// and by which name the driver publishes the properties that users select by in neutral words.
//
// A driver is a YAML file in the folder drivers, checked strictly when the program starts. A driver that has none is
// still usable: every device counts, and properties are selected by raw attributes.
//
// The package is pure and holds no expression and no code for a vendor; CEL is built by package selector.
package catalog
