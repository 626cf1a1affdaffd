package crd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gpupool/gpupool-operator/test/cluster"
	"github.com/gpupool/gpupool-operator/test/crd/schema"
)

const (
	definitions = "../../config/crd/bases"

	pollPeriod = 50 * time.Millisecond
	// soon is how long the API server may take to serve a definition. It is a limit for broken ones, not a measure.
	soon = 30 * time.Second
)

// apiServer is an API server that serves both kinds.
type apiServer struct {
	config *rest.Config
	client client.Client // refuses unknown fields
	stop   func() error
}

var (
	// start starts the server, once, when the first test needs it.
	start = sync.OnceValues(startServer)
	// started says whether there may be something to stop.
	started atomic.Bool
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	code := m.Run()
	if started.Load() {
		// A server that could not be started has failed a test already.
		if server, err := start(); err == nil {
			if err := server.stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// running is the server of this suite.
func running(t *testing.T) *apiServer {
	t.Helper()
	server, err := start()
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func startServer() (*apiServer, error) {
	started.Store(true)
	options := cluster.Options{Log: os.Stderr}
	if os.Getenv(cluster.EnvKubeconfig) == "" {
		options.Components = []cluster.Component{} // the API server alone decides everything here
	}
	ctx := context.Background()
	c, err := cluster.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	server := &apiServer{config: c.Config, stop: c.Stop}
	if err := server.prepare(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return server, nil
}

// prepare installs both definitions. A rule that costs too much makes the server refuse them.
func (s *apiServer) prepare(ctx context.Context) error {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	k8s, err := client.New(s.config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	s.client = client.WithFieldValidation(k8s, metav1.FieldValidationStrict)
	crds, err := schema.Read(definitions)
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := s.serve(ctx, crd.CustomResourceDefinition); err != nil {
			return err
		}
	}
	return nil
}

// serve installs a definition, or brings an installed one up to date, and waits until its kind is served.
func (s *apiServer) serve(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	unstructured.RemoveNestedField(object.Object, "status")
	applied := client.ApplyConfigurationFromUnstructured(object)
	if err := s.client.Apply(ctx, applied, client.FieldOwner("install"), client.ForceOwnership); err != nil {
		return fmt.Errorf("installing %s: %w", crd.Name, err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, pollPeriod, soon, true, func(ctx context.Context) (bool, error) {
		last = s.isServed(ctx, crd)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be served: %w: %w", crd.Name, err, last)
	}
	return nil
}

// isServed returns why a definition is not in use yet. The server says so a little before it answers for the kind.
func (s *apiServer) isServed(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	found := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(crd), found); err != nil {
		return err
	}
	if !slices.ContainsFunc(found.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}) {
		return fmt.Errorf("it is not established: %v", found.Status.Conditions)
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
	list.SetKind(crd.Spec.Names.ListKind)
	return s.client.List(ctx, list, client.Limit(1))
}

// remove deletes an object, and waits until it is gone.
func (s *apiServer) remove(t *testing.T, object client.Object) {
	t.Helper()
	ctx := context.Background() // the test's own is over when it cleans up
	if err := client.IgnoreNotFound(s.client.Delete(ctx, object)); err != nil {
		t.Error(err)
		return
	}
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, soon, true, func(ctx context.Context) (bool, error) {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("waiting for %s to go: %v", object.GetName(), err)
	}
}
