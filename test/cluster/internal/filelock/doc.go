// Package filelock holds locks on files between processes. The kernel drops a lock when its holder ends, however it
// ends, so there are no stale locks. It must not be used on network file systems, where such locks are unreliable.
package filelock
