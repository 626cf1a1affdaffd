package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// server answers lists, watches and discovery as an API server does, as far as a reflector asks. What it decides is
// nothing that a test here is about: selectors, for example, it only records.
type server struct {
	*httptest.Server

	mutex   sync.Mutex
	version int
	// forgotten is the version up to which the server remembers no events.
	forgotten int
	objects   map[string]map[string]json.RawMessage
	// pageSize is how many objects a list has at most.
	pageSize int
	// noStreams refuses to stream lists, as servers before 1.34 do.
	noStreams bool
	// forbidden and unserved are resources that are refused and not known.
	forbidden, unserved map[string]bool
	// silent makes discovery fail.
	silent  bool
	watches map[chan watchEvent]string
	// told are the events that watches were told of: one that starts at an older version hears of them too.
	told     []toldEvent
	requests []request
}

type request struct {
	resource string
	query    url.Values
}

type toldEvent struct {
	resource string
	version  int
	event    watchEvent
}

type watchEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{
		objects: map[string]map[string]json.RawMessage{}, pageSize: 100,
		forbidden: map[string]bool{}, unserved: map[string]bool{}, watches: map[chan watchEvent]string{},
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.do(s.dropWatches)
		s.Close()
	})
	return s
}

func (s *server) config() *rest.Config { return &rest.Config{Host: s.URL} }

// do changes the server's state.
func (s *server) do(change func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change()
}

func resourceOf(object runtime.Object) string {
	switch object.(type) {
	case *corev1.Node:
		return "nodes"
	case *corev1.Pod:
		return "pods"
	case *resourcev1.ResourceSlice:
		return "resourceslices"
	case *resourcev1.ResourceClaim:
		return "resourceclaims"
	default:
		return "devicetaintrules"
	}
}

// put stores an object and tells the watches; putUnseen does not, as if they had been away. delete and deleteUnseen
// remove one.
func (s *server) put(t *testing.T, object runtime.Object) {
	t.Helper()
	s.putUnseen(t, object)()
}

func (s *server) putUnseen(t *testing.T, object runtime.Object) (tell func()) {
	t.Helper()
	return s.change(t, object, func(stored map[string]json.RawMessage, key string, text json.RawMessage) string {
		_, found := stored[key]
		stored[key] = text
		if found {
			return "MODIFIED"
		}
		return "ADDED"
	})
}

func (s *server) delete(t *testing.T, object runtime.Object) {
	t.Helper()
	s.deleteUnseen(t, object)()
}

func (s *server) deleteUnseen(t *testing.T, object runtime.Object) (tell func()) {
	t.Helper()
	return s.change(t, object, func(stored map[string]json.RawMessage, key string, _ json.RawMessage) string {
		delete(stored, key)
		return "DELETED"
	})
}

// change applies a change to what is stored of an object's resource, and returns what tells the watches of it.
func (s *server) change(
	t *testing.T, object runtime.Object, apply func(map[string]json.RawMessage, string, json.RawMessage) string,
) (tell func()) {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.version++
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	named, err := meta.Accessor(object)
	if err != nil {
		t.Fatal(err)
	}
	named.SetResourceVersion(strconv.Itoa(s.version))
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	resource := resourceOf(object)
	if s.objects[resource] == nil {
		s.objects[resource] = map[string]json.RawMessage{}
	}
	event := watchEvent{Type: apply(s.objects[resource], named.GetNamespace()+"/"+named.GetName(), text), Object: text}
	version := s.version
	return func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.told = append(s.told, toldEvent{resource, version, event})
		for events, watched := range s.watches {
			if watched == resource {
				events <- event
			}
		}
	}
}

// dropWatches forgets what was before, as a server does that has compacted: watches end, and one that wants to go on from
// there is refused.
func (s *server) dropWatches() {
	s.forgotten = s.version
	for events := range s.watches {
		events <- expired()
		close(events)
		delete(s.watches, events)
	}
}

// expired tells a watch that the server has forgotten where it was.
func expired() watchEvent {
	gone, _ := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone,
	})
	return watchEvent{Type: "ERROR", Object: gone}
}

// asked are the requests for a resource that satisfy a condition.
func (s *server) asked(resource string, is func(url.Values) bool) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	asked := 0
	for _, r := range s.requests {
		if r.resource == resource && is(r.query) {
			asked++
		}
	}
	return asked
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource, query := path.Base(r.URL.Path), r.URL.Query()
	s.mutex.Lock()
	s.requests = append(s.requests, request{resource, query})
	forbidden, unserved, silent, noStreams := s.forbidden[resource], s.unserved[resource], s.silent, s.noStreams
	s.mutex.Unlock()
	switch {
	case resource == "v1" && silent:
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
	case unserved:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case resource == "v1":
		s.discover(w)
	case forbidden:
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	case query.Get("watch") == "":
		s.list(w, resource, query)
	case query.Get("sendInitialEvents") == "true" && noStreams:
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	default:
		s.watch(w, r, resource, query)
	}
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: reason, Code: int32(code),
	})
}

func (s *server) discover(w http.ResponseWriter) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: resourcev1.SchemeGroupVersion.String(),
	}
	for _, name := range []string{"resourceslices", "resourceclaims", "devicetaintrules"} {
		if !s.unserved[name] {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

var listKinds = map[string][2]string{
	"nodes":            {"v1", "NodeList"},
	"pods":             {"v1", "PodList"},
	"resourceslices":   {"resource.k8s.io/v1", "ResourceSliceList"},
	"resourceclaims":   {"resource.k8s.io/v1", "ResourceClaimList"},
	"devicetaintrules": {"resource.k8s.io/v1", "DeviceTaintRuleList"},
}

// list answers with a page; the token for the next is where it begins.
func (s *server) list(w http.ResponseWriter, resource string, query url.Values) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	names := slices.Sorted(maps.Keys(s.objects[resource]))
	from, _ := strconv.Atoi(query.Get("continue"))
	to := min(from+s.pageSize, len(names))
	next := ""
	if to < len(names) {
		next = strconv.Itoa(to)
	}
	items := []json.RawMessage{}
	for _, name := range names[from:to] {
		items = append(items, s.objects[resource][name])
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": listKinds[resource][0], "kind": listKinds[resource][1], "items": items,
		"metadata": map[string]string{"resourceVersion": strconv.Itoa(s.version), "continue": next},
	})
}

// watch sends events until the watch is dropped, after the initial ones if it is asked to stream the list.
func (s *server) watch(w http.ResponseWriter, r *http.Request, resource string, query url.Values) {
	events := make(chan watchEvent, 100)
	s.mutex.Lock()
	s.watches[events] = resource
	var initial []watchEvent
	if query.Get("sendInitialEvents") == "true" {
		for _, name := range slices.Sorted(maps.Keys(s.objects[resource])) {
			initial = append(initial, watchEvent{Type: "ADDED", Object: s.objects[resource][name]})
		}
		initial = append(initial, s.bookmark(resource))
	} else {
		from, _ := strconv.Atoi(query.Get("resourceVersion"))
		if from < s.forgotten {
			initial = append(initial, expired())
			close(events)
			delete(s.watches, events)
		}
		for _, told := range s.told {
			if told.resource == resource && told.version > from {
				initial = append(initial, told.event)
			}
		}
	}
	s.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	send := func(event watchEvent) {
		_ = encoder.Encode(event)
		w.(http.Flusher).Flush()
	}
	w.(http.Flusher).Flush()
	for _, event := range initial {
		send(event)
	}
	for {
		select {
		case <-r.Context().Done():
			s.do(func() { delete(s.watches, events) })
			return
		case event, open := <-events:
			if !open {
				return
			}
			send(event)
		}
	}
}

// bookmark marks the end of the initial events.
func (s *server) bookmark(resource string) watchEvent {
	kind := strings.TrimSuffix(listKinds[resource][1], "List")
	return watchEvent{Type: "BOOKMARK", Object: json.RawMessage(fmt.Sprintf(
		`{"apiVersion": %q, "kind": %q, "metadata": {"resourceVersion": "%d", "annotations": {%q: "true"}}}`,
		listKinds[resource][0], kind, s.version, metav1.InitialEventsAnnotationKey,
	))}
}
