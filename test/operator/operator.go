// Package operator runs the operator in the process of a test, under rights that the test chooses, and shows the requests
// that it sends.
//
// The package must not be imported by the product.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/go-logr/logr"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/gpupool/gpupool-operator/controllers"
)

// Start runs the operator until stop is called or the context ends. Its writes go through the recorder.
func Start(ctx context.Context, rights *rest.Config, writes *Recorder, log logr.Logger) (stop func() error, err error) {
	scheme := runtime.NewScheme()
	if err := controllers.AddToScheme(scheme); err != nil {
		return nil, err
	}
	recorded := rest.CopyConfig(rights)
	recorded.Wrap(writes.wrap)
	mgr, err := ctrl.NewManager(recorded, ctrl.Options{
		Scheme:  scheme,
		Cache:   controllers.CacheOptions(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Logger:  log,
		// Tests run one operator after the other in one process.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := controllers.Setup(ctx, mgr, clock.RealClock{}); err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

// Recorder notes the writes of an operator, and can cut its connection. Events do not count: they are told, not stated,
// and come when they come.
type Recorder struct {
	mu     sync.Mutex
	writes []string
	cut    bool
	left   int
}

// Writes are the method and path of the writes so far.
func (r *Recorder) Writes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.writes...)
}

// CutAfter lets n more writes through. All further ones fail, as if the operator had died.
func (r *Recorder) CutAfter(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut, r.left = true, n
}

func (r *Recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodGet && !r.allow(request) {
			return nil, errors.New("the operator is dead")
		}
		return next.RoundTrip(request)
	})
}

func (r *Recorder) allow(request *http.Request) bool {
	if strings.Contains(request.URL.Path, "/events") {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut {
		if r.left == 0 {
			return false
		}
		r.left--
	}
	r.writes = append(r.writes, request.Method+" "+request.URL.Path)
	return true
}

// roundTripper is a function that is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
