package source

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gpupool/gpupool-operator/internal/inventory"
)

const patience = 20 * time.Second

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func TestMailboxNeverWaits(t *testing.T) {
	m := newMailbox()
	received, goOn := make(chan inventory.Change), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.deliver(ctx, func(change inventory.Change) {
			received <- change
			<-goOn
		})
	}()

	m.post(inventory.Change{Drivers: []string{"a"}})
	if diff := cmp.Diff(inventory.Change{Drivers: []string{"a"}}, receive(t, received)); diff != "" {
		t.Errorf("first change (-want +got):\n%s", diff)
	}
	// The receiver is busy now. Were posting to wait for it, the test would end here.
	for _, driver := range []string{"b", "c", "b"} {
		m.post(inventory.Change{Drivers: []string{driver}})
	}
	m.post(inventory.Change{})
	goOn <- struct{}{}
	if diff := cmp.Diff(inventory.Change{Drivers: []string{"b", "c"}}, receive(t, received)); diff != "" {
		t.Errorf("second change (-want +got):\n%s", diff)
	}
	goOn <- struct{}{}
	cancel()
	receive(t, ended)
}

func TestMailboxDropsChangesOfNothing(t *testing.T) {
	m := newMailbox()
	m.post(inventory.Change{})
	if len(m.filled) > 0 {
		t.Error("a change of nothing is delivered")
	}
}
