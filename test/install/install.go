// Package install puts the operator's manifests, as they stand in config, into a cluster. Suites and the demo use it,
// so that they run under the rights that users give the operator, and under no other.
//
// The package must not be imported by the product.
package install

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/test/cluster"
)

// Namespace and ServiceAccount are whose rights the manager has.
const (
	Namespace      = "gpupool-system"
	ServiceAccount = "gpupool-manager"
)

const (
	pollPeriod       = 50 * time.Millisecond
	establishTimeout = 30 * time.Second
)

// fieldManager is whose the manifests are.
const fieldManager = "install"

// Into applies the operator's manifests to a running cluster. It returns a client with the rights of the cluster's
// administrator, without a cache, and the rights of the operator.
func Into(ctx context.Context, running *cluster.Cluster) (administrator client.Client, rights *rest.Config, err error) {
	scheme := runtime.NewScheme()
	err = errors.Join(corev1.AddToScheme(scheme), resourcev1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme),
		v1alpha1.AddToScheme(scheme))
	if err != nil {
		return nil, nil, err
	}
	if administrator, err = client.New(running.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, nil, fmt.Errorf("making a client: %w", err)
	}
	if err := Operator(ctx, administrator); err != nil {
		return nil, nil, err
	}
	rights, err = running.ServiceAccountConfig(ctx, Namespace, ServiceAccount)
	return administrator, rights, err
}

// Operator applies the custom resource definitions, the namespace and the rights of the operator, and waits until both
// kinds are served.
func Operator(ctx context.Context, c client.Client) error {
	for _, pattern := range []string{"config/manager/namespace.yaml", "config/crd/bases/*.yaml", "config/rbac/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(Root(), pattern))
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("no manifest matches %s", pattern)
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			if err := File(ctx, c, file); err != nil {
				return err
			}
		}
	}
	return established(ctx, c)
}

// Root is the folder that the operator's source stands in.
func Root() string {
	_, file, _, _ := goruntime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// File applies every object of a YAML file.
func File(ctx context.Context, c client.Client, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := YAML(ctx, c, content); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// YAML applies every object of a YAML text, as a GitOps tool does: by server-side apply, with strict validation.
func YAML(ctx context.Context, c client.Client, content []byte) error {
	objects, err := Objects(content)
	if err != nil {
		return err
	}
	for _, object := range objects {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// Objects reads every object of a YAML text.
func Objects(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func established(ctx context.Context, c client.Client) error {
	for _, name := range []string{"gpupools.gpupool.dev", "workloadprofiles.gpupool.dev"} {
		err := wait.PollUntilContextTimeout(ctx, pollPeriod, establishTimeout, true, func(ctx context.Context) (bool, error) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
				return false, err
			}
			return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			}), nil
		})
		if err != nil {
			return fmt.Errorf("waiting for %s to be served: %w", name, err)
		}
	}
	return nil
}
