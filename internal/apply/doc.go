// Package apply is the only writer of child objects. It compares what is wanted with what is there, and sends a request
// only where they differ in meaning.
//
// An object is the owner's if it carries the managed-by label and the owner's name label; any other object of a wanted
// name is left alone and reported. Kinds whose spec may change are written by server-side apply of the whole wanted
// object, forced, with the uid of the object that was compared; their first creation must not take over an object that
// somebody made in the meantime. Kinds whose spec is immutable are created by POST and replaced by delete and create,
// after a dry run has shown that the new object will be accepted.
//
// The package knows nothing of pools and profiles, and decides nothing about what is wanted.
package apply
