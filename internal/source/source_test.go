package source

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/gpupool/gpupool-operator/internal/inventory"
)

// running is a source that watches a server.
type running struct {
	*inventory.Inventory
	changes chan inventory.Change

	mutex  sync.Mutex
	logged []string
}

// start runs a source until the test ends.
func start(t *testing.T, server *server, changes ...func(*Source)) *running {
	t.Helper()
	r := &running{Inventory: inventory.New(), changes: make(chan inventory.Change, 100)}
	source, err := New(server.config(), r.Inventory, Options{
		ProfileLabel: profileLabel,
		Changed:      func(change inventory.Change) { r.changes <- change },
		Log:          r.logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(source)
	}
	if source.NeedLeaderElection() {
		t.Error("only the leader would have an inventory")
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- source.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := receive(t, ended); err != nil {
			t.Errorf("starting: %v", err)
		}
	})
	return r
}

func (r *running) logger() logr.Logger {
	return funcr.New(func(_, entry string) {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.logged = append(r.logged, entry)
	}, funcr.Options{})
}

// logs is how many log entries have a text.
func (r *running) logs(text string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	count := 0
	for _, entry := range r.logged {
		if strings.Contains(entry, text) {
			count++
		}
	}
	return count
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("it never was so that %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (r *running) eventuallyDevices(t *testing.T, want inventory.DeviceCounts) {
	t.Helper()
	var got inventory.PoolCounts
	known := false
	defer func() {
		if t.Failed() {
			t.Logf("known %v, counts %+v, devices %+v", known, got, got.Devices)
		}
	}()
	eventually(t, "devices are as wanted", func() bool {
		got, known = r.PoolCounts(inventory.PoolQuery{Driver: driver, ClassName: class})
		return known && got.Devices != nil && cmp.Equal(*got.Devices, want)
	})
}

func TestSourceFollowsTheServer(t *testing.T) {
	for name, noStreams := range map[string]bool{"that streams lists": false, "that does not": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer(t)
			server.noStreams = noStreams
			server.put(t, newNode("a"))
			server.put(t, newSlice("a", "gpu-0", "gpu-1"))
			r := start(t, server)
			r.eventuallyDevices(t, inventory.DeviceCounts{Total: 2, Available: 2})
			if change := receive(t, r.changes); !change.Everything {
				t.Errorf("the first change is %+v", change)
			}

			server.put(t, newClaim("c"))
			if diff := cmp.Diff(inventory.Change{Classes: []string{class}, Profiles: []string{"train"}}, receive(t, r.changes)); diff != "" {
				t.Errorf("change by a claim (-want +got):\n%s", diff)
			}
			server.put(t, newPod("p", "c"))
			receive(t, r.changes)
			if claims, _ := r.ProfileClaims("train"); claims.Pending != 1 {
				t.Errorf("claims are %+v", claims)
			}
			server.put(t, newRule())
			r.eventuallyDevices(t, inventory.DeviceCounts{
				Total: 2, Unavailable: 2, UnavailableReasons: map[inventory.UnavailableReason]int{inventory.Tainted: 2},
			})
			server.delete(t, newRule())
			server.put(t, newSlice("a", "gpu-0"))
			r.eventuallyDevices(t, inventory.DeviceCounts{Total: 1, Available: 1})
			server.delete(t, newSlice("a"))
			r.eventuallyDevices(t, inventory.DeviceCounts{})
		})
	}
}

func TestSourceReadsListsPageByPage(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	server.noStreams, server.pageSize = true, 2
	lists := func(is func(url.Values) bool) int {
		return server.asked("resourceslices", func(query url.Values) bool { return query.Get("watch") == "" && is(query) })
	}
	every := func(url.Values) bool { return true }
	server.put(t, newNode("a"))
	server.put(t, newSlice("a", "gpu-0"))
	r := start(t, server)
	r.eventuallyDevices(t, inventory.DeviceCounts{Total: 1, Available: 1})
	if n := lists(every); n != 1 {
		t.Errorf("1 slice in pages of 2 was %d lists", n)
	}
	for _, name := range []string{"b", "c", "d", "e"} {
		server.putUnseen(t, newNode(name))
		server.putUnseen(t, newSlice(name, "gpu-0"))
	}
	server.do(server.dropWatches)
	r.eventuallyDevices(t, inventory.DeviceCounts{Total: 5, Available: 5})
	if n := lists(every); n != 4 {
		t.Errorf("5 slices in pages of 2 made it %d lists, want 4", n)
	}
	// For resource version 0 a server ignores the limit.
	inFull := func(query url.Values) bool { return query.Get("limit") != "500" || query.Get("resourceVersion") == "0" }
	if n := lists(inFull); n != 0 {
		t.Errorf("%d lists were not asked for in pages", n)
	}
}

func TestSourceAsksForWaitingPodsOnly(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	r := start(t, server)
	eventually(t, "the inventory is synced", r.Synced)
	const selector = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
	if n := server.asked("pods", func(query url.Values) bool { return query.Get("fieldSelector") != selector }); n != 0 {
		t.Errorf("%d requests were for other pods", n)
	}
}

func TestSourceRepairsWhatItMissed(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	for _, name := range []string{"a", "b"} {
		server.put(t, newNode(name))
		server.put(t, newSlice(name, "gpu-0"))
	}
	r := start(t, server)
	r.eventuallyDevices(t, inventory.DeviceCounts{Total: 2, Available: 2})
	receive(t, r.changes)

	server.deleteUnseen(t, newSlice("b"))
	server.putUnseen(t, newSlice("a", "gpu-0", "gpu-1", "gpu-2"))
	server.do(server.dropWatches)
	r.eventuallyDevices(t, inventory.DeviceCounts{Total: 3, Available: 3})
	if diff := cmp.Diff(inventory.Change{Drivers: []string{driver}}, receive(t, r.changes)); diff != "" {
		t.Errorf("change by a new connection (-want +got):\n%s", diff)
	}
	select {
	case change := <-r.changes:
		t.Errorf("lists in which nothing is new changed %+v", change)
	default:
	}
}

func TestSourceTellsOfAForbiddenKindOnce(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	server.put(t, newNode("a"))
	server.put(t, newSlice("a", "gpu-0"))
	server.forbidden["resourceclaims"] = true
	r := start(t, server)
	lists := func() int {
		return server.asked("resourceclaims", func(query url.Values) bool { return query.Get("watch") == "" })
	}
	eventually(t, "claims were asked for again", func() bool { return lists() >= 2 })
	if r.Synced() {
		t.Error("the inventory is synced without claims")
	}
	if n := r.logs(`"Failing to watch; trying on"`); n != 1 || r.logs(`"resource"="resourceclaims"`) != 1 {
		t.Errorf("it was told %d times: %q", n, r.logged)
	}
	if n := lists(); n > 3 {
		t.Errorf("claims were asked for %d times", n)
	}

	server.do(func() { server.forbidden["resourceclaims"] = false })
	r.eventuallyDevices(t, inventory.DeviceCounts{Total: 1, Available: 1})
	server.put(t, newClaim("c"))
	eventually(t, "the end of the trouble is told", func() bool { return r.logs(`"Watching again"`) == 1 })
}

func TestSourceWaitsForDiscovery(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	server.put(t, newNode("a"))
	server.put(t, newSlice("a", "gpu-0"))
	server.put(t, newRule())
	server.silent = true
	r := start(t, server)
	eventually(t, "discovery was tried again", func() bool {
		return server.asked("v1", func(url.Values) bool { return true }) >= 2
	})
	if r.Synced() || server.asked("nodes", func(url.Values) bool { return true }) > 0 {
		t.Error("counts may come out before it is known whether there are taints")
	}
	server.do(func() { server.silent = false })
	eventually(t, "the inventory is synced", r.Synced)
	r.eventuallyDevices(t, inventory.DeviceCounts{
		Total: 1, Unavailable: 1, UnavailableReasons: map[inventory.UnavailableReason]int{inventory.Tainted: 1},
	})
}

func TestSourceWaitsForAServerWithDRA(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	for _, resource := range []string{"v1", "resourceslices", "resourceclaims", "devicetaintrules"} {
		server.unserved[resource] = true
	}
	r := start(t, server)
	eventually(t, "it is told what is missing", func() bool {
		return r.logs(`"resource"="resourceslices"`) == 1 && r.logs(`"resource"="resourceclaims"`) == 1
	})
	if r.Synced() {
		t.Error("the inventory is synced")
	}
}

func TestSourceRequiresTaintRulesThatAreServed(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	server.forbidden["devicetaintrules"] = true
	r := start(t, server)
	eventually(t, "it is told that rules are forbidden", func() bool { return r.logs(`"resource"="devicetaintrules"`) == 1 })
	eventually(t, "pods were asked for", func() bool { return server.asked("pods", func(url.Values) bool { return true }) > 0 })
	if r.Synced() {
		t.Error("the inventory is synced without the taints that there are")
	}
}

// Servers before 1.37 do not serve DeviceTaintRules. A server that is upgraded does, one that is set back does not.
func TestSourceFindsTaintRulesLater(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	server.put(t, newNode("a"))
	server.put(t, newSlice("a", "gpu-0"))
	server.put(t, newRule())
	server.unserved["devicetaintrules"] = true
	r := start(t, server, func(s *Source) { s.discoveryPeriod = 10 * time.Millisecond })
	available := inventory.DeviceCounts{Total: 1, Available: 1}
	r.eventuallyDevices(t, available)
	if n := server.asked("devicetaintrules", func(url.Values) bool { return true }); n != 0 {
		t.Errorf("%d requests were for a kind that is not served", n)
	}

	server.do(func() { server.unserved["devicetaintrules"] = false })
	r.eventuallyDevices(t, inventory.DeviceCounts{
		Total: 1, Unavailable: 1, UnavailableReasons: map[inventory.UnavailableReason]int{inventory.Tainted: 1},
	})
	server.do(func() {
		server.unserved["devicetaintrules"] = true
		server.dropWatches()
	})
	r.eventuallyDevices(t, available)
	server.do(func() { server.unserved["devicetaintrules"] = false })
	r.eventuallyDevices(t, inventory.DeviceCounts{
		Total: 1, Unavailable: 1, UnavailableReasons: map[inventory.UnavailableReason]int{inventory.Tainted: 1},
	})
}
