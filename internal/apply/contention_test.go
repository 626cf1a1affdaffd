package apply

import (
	"crypto/sha256"
	"testing"
	"time"
)

func TestContention(t *testing.T) {
	ref, want, other := Ref{}, sha256.Sum256([]byte("want")), sha256.Sum256([]byte("other"))
	start := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

	t.Run("a first write, and a change of mind, wait for nothing", func(t *testing.T) {
		c := newContention()
		for i := range 10 {
			now := start.Add(time.Duration(i) * time.Second)
			content := want
			if i%2 == 1 {
				content = other
			}
			if wait := c.wait(ref, content, now); wait != 0 {
				t.Fatalf("write %d waits %v", i, wait)
			}
			c.record(ref, content, "", sent{}, now)
		}
	})

	t.Run("corrections wait longer and longer, up to a limit, and never stop", func(t *testing.T) {
		c, now := newContention(), start
		var waits []time.Duration
		for range 12 {
			wait := c.wait(ref, want, now)
			waits = append(waits, wait)
			now = now.Add(wait)
			if again := c.wait(ref, want, now); again != 0 {
				t.Fatalf("after waiting %v there are still %v to wait", wait, again)
			}
			c.record(ref, want, "", sent{}, now)
		}
		if waits[contentionThreshold] != 0 || waits[contentionThreshold+1] != contentionFirstWait || waits[len(waits)-1] != contentionLongest {
			t.Errorf("waits are %v", waits)
		}
		if quiet := c.contended(ref, now); quiet != contentionQuiet {
			t.Errorf("contended for %v more, want %v", quiet, contentionQuiet)
		}
		if quiet := c.contended(ref, now.Add(contentionQuiet)); quiet != 0 {
			t.Errorf("contended for %v more after it was quiet", quiet)
		}
		if wait := c.wait(ref, want, now.Add(contentionMemory+1)); wait != 0 {
			t.Errorf("waits %v after the war is forgotten", wait)
		}
	})

	t.Run("an old copy in the cache is no reason to write again", func(t *testing.T) {
		c := newContention()
		c.record(ref, want, "7", sent{}, start)
		if s := c.standing(ref, want, "7", start.Add(time.Hour/10)); s != (standing{yes: true}) {
			t.Errorf("the replaced version: %+v", s)
		}
		if s := c.standing(ref, want, "8", start); s.yes {
			t.Error("a newer version must be compared")
		}
		if s := c.standing(ref, other, "7", start); s.yes {
			t.Error("another content must be written")
		}
	})

	t.Run("a created object that is not to be seen yet is looked for once more", func(t *testing.T) {
		c := newContention()
		c.record(ref, want, "", sent{}, start)
		if s := c.standing(ref, want, "", start.Add(time.Second)); s != (standing{yes: true, retryAfter: cacheDelay - time.Second}) {
			t.Errorf("after a second: %+v", s)
		}
		if s := c.standing(ref, want, "", start.Add(cacheDelay)); s.yes {
			t.Error("by now it must be gone")
		}
	})

	t.Run("what the server drops is not written again, however long ago it was, until somebody changes the object", func(t *testing.T) {
		c := newContention()
		c.record(ref, want, "7", sent{version: "8", dropped: true}, start)
		later := start.Add(10 * contentionMemory)
		c.sweep(later)
		if s := c.standing(ref, want, "8", later); s != (standing{yes: true, dropped: true}) {
			t.Errorf("the result: %+v", s)
		}
		if s := c.standing(ref, want, "9", later); s.yes {
			t.Error("somebody changed it")
		}
	})

	t.Run("what nobody touches is forgotten", func(t *testing.T) {
		c := newContention()
		c.record(ref, want, "", sent{}, start)
		elsewhere := Ref{}
		elsewhere.Name = "elsewhere"
		c.record(elsewhere, want, "", sent{}, start.Add(2*contentionMemory))
		if _, known := c.history[ref]; known || len(c.history) != 1 {
			t.Errorf("history is %v", c.history)
		}
	})
}
