// Package snapshot is the only reader of the objects that plans are made of: it takes one consistent view for each
// reconcile and hands it on as plain structs. It decides nothing and writes nothing.
//
// Devices, claims, pods and nodes are not read here: package source feeds them to package inventory.
package snapshot
