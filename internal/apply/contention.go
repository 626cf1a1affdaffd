package apply

import (
	"crypto/sha256"
	"sync"
	"time"
)

// Contention limits. Writing the same content to the same object again counts as a correction when the write before is
// not longer ago than contentionMemory. From the third one on somebody else keeps changing the object, and corrections
// wait, each twice as long as the one before.
const (
	contentionThreshold = 3
	contentionMemory    = 10 * time.Minute
	contentionFirstWait = 10 * time.Second
	contentionLongest   = 5 * time.Minute
	// contentionQuiet is how long a corrected object must stay as it is for the contention to be over.
	contentionQuiet = time.Minute
	// cacheDelay is how long a created object may take to appear in the cache.
	cacheDelay = 2 * time.Second
)

// contention remembers writes, to tell a correction from a change and to slow a war down. It never decides about
// content, and losing it with the process only restarts the waits.
type contention struct {
	mu      sync.Mutex
	history map[Ref]*writes
	swept   time.Time
}

// writes is the recent history of one object.
type writes struct {
	// want is the digest of the content that was written last.
	want [sha256.Size]byte
	// base is the resourceVersion that the last write replaced, empty for a creation, and result the one that it made,
	// where that is known.
	base, result string
	// dropped is whether the server left a part of the content out.
	dropped bool
	// last is when the last write was sent.
	last time.Time
	// corrections is how often want was written again.
	corrections int
}

func newContention() *contention {
	return &contention{history: map[Ref]*writes{}}
}

// standing is what is known of an object whose last write already put the wanted content there.
type standing struct {
	yes bool
	// dropped is whether the server left a part of the content out: writing it again would change nothing.
	dropped bool
	// retryAfter is when to look again.
	retryAfter time.Duration
}

// standing says whether the last write already put this content there. The caller then looks at its result, of which
// the server has dropped a part; or at an older copy: the one that the write replaced, or none although an object was
// created a moment ago. The last may also mean that somebody has deleted the object since, so it must be looked at
// again.
func (c *contention) standing(ref Ref, want [sha256.Size]byte, base string, now time.Time) standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, known := c.history[ref]
	switch {
	case !known || w.want != want:
		return standing{}
	case w.dropped && w.result == base:
		return standing{yes: true, dropped: true}
	case w.base != base || now.Sub(w.last) > contentionMemory:
		return standing{}
	case base != "":
		return standing{yes: true, dropped: w.dropped}
	}
	retryAfter := w.last.Add(cacheDelay).Sub(now)
	return standing{yes: retryAfter > 0, dropped: w.dropped, retryAfter: max(0, retryAfter)}
}

// wait is how long a write of this content must wait because somebody else keeps changing the object.
func (c *contention) wait(ref Ref, want [sha256.Size]byte, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, known := c.history[ref]
	if !known || w.want != want || w.corrections < contentionThreshold || now.Sub(w.last) > contentionMemory {
		return 0
	}
	doublings := min(w.corrections-contentionThreshold, 10)
	wait := min(contentionFirstWait<<doublings, contentionLongest)
	return max(0, w.last.Add(wait).Sub(now))
}

// contended is for how much longer an object that is as wanted counts as contended.
func (c *contention) contended(ref Ref, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, known := c.history[ref]
	if !known || w.corrections < contentionThreshold {
		return 0
	}
	return max(0, w.last.Add(contentionQuiet).Sub(now))
}

// sent is an object as the server returned it from a write.
type sent struct {
	// version is its resourceVersion; empty where the write returned none.
	version string
	// dropped is whether the server left a part of the content out.
	dropped bool
}

// record notes a write that was accepted.
func (c *contention) record(ref Ref, want [sha256.Size]byte, base string, result sent, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(now)
	w, known := c.history[ref]
	if !known || w.want != want || now.Sub(w.last) > contentionMemory {
		w = &writes{want: want}
		c.history[ref] = w
	} else {
		w.corrections++
	}
	w.base, w.result, w.dropped, w.last = base, result.version, result.dropped, now
}

// sweep forgets objects that were not written for long.
func (c *contention) sweep(now time.Time) {
	if now.Sub(c.swept) < contentionMemory {
		return
	}
	c.swept = now
	for ref, w := range c.history {
		if now.Sub(w.last) > contentionMemory && !w.dropped {
			delete(c.history, ref)
		}
	}
}
