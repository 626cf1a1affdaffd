// Package fanout measures how fast one profile reaches many namespaces, beside a bare client that does nothing but create
// the same templates with the same concurrency in the same run. It has no code but its tests.
package fanout
