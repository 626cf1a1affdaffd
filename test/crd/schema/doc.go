// Package schema reads the custom resource definitions of this repository and lists what their schemas say, field by
// field. Tests use it to hold every field to the same promises.
//
// It judges nothing itself, and must not be imported by the product.
package schema
