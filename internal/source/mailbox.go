package source

import (
	"context"
	"sync"

	"github.com/gpupool/gpupool-operator/internal/inventory"
)

// mailbox carries changes from the watches to whoever acts on them. Posting never waits: what is posted while the
// receiver is busy reaches it as one Change.
type mailbox struct {
	mutex   sync.Mutex
	pending inventory.Change
	// filled holds one token while something may be pending.
	filled chan struct{}
}

func newMailbox() *mailbox {
	return &mailbox{filled: make(chan struct{}, 1)}
}

func (m *mailbox) post(change inventory.Change) {
	if change.IsZero() {
		return
	}
	m.mutex.Lock()
	m.pending = m.pending.Union(change)
	m.mutex.Unlock()
	select {
	case m.filled <- struct{}{}:
	default:
	}
}

// deliver hands changes to a receiver, one at a time, until the context ends.
func (m *mailbox) deliver(ctx context.Context, receive func(inventory.Change)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.filled:
			m.mutex.Lock()
			change := m.pending
			m.pending = inventory.Change{}
			m.mutex.Unlock()
			receive(change)
		}
	}
}
