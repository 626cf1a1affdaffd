// Package story is the operator's main job as one run: devices of several models are published, pools and profiles are
// applied from config/samples, workloads ask for more than there is, and somebody frees a part of it. It prints what a
// user sees, and fails where a user would be disappointed.
//
// The demo tells it on a cluster that it starts itself; installation tests tell it on clusters that they set up.
//
// The package must not be imported by the product.
package story
