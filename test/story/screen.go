package story

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// screen prints what a user of kubectl sees: tables as the API server lays them out, and objects as YAML.
type screen struct {
	out    io.Writer
	server *rest.RESTClient
	begun  time.Time
}

func newScreen(out io.Writer, config *rest.Config) (*screen, error) {
	tables := rest.CopyConfig(config)
	tables.AcceptContentTypes = "application/json;as=Table;v=v1;g=meta.k8s.io"
	tables.ContentType = "application/json"
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	tables.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	server, err := rest.UnversionedRESTClientFor(tables)
	if err != nil {
		return nil, fmt.Errorf("making a client for tables: %w", err)
	}
	return &screen{out: out, server: server, begun: time.Now()}, nil
}

// say starts a chapter.
func (s *screen) say(format string, args ...any) {
	fmt.Fprintf(s.out, "\n== %s (%.0f s)\n", fmt.Sprintf(format, args...), time.Since(s.begun).Seconds())
}

// note explains.
func (s *screen) note(text string) {
	fmt.Fprintln(s.out, "   "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n   "))
}

// table prints what `kubectl get` prints for a list. Columns that are named in skip are left out.
func (s *screen) table(ctx context.Context, command, path string, skip ...string) error {
	table := &metav1.Table{}
	if err := s.server.Get().AbsPath(path).Do(ctx).Into(table); err != nil {
		return fmt.Errorf("reading %s as a table: %w", path, err)
	}
	for i := range table.Rows { // the printer looks up namespaces there
		object := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(table.Rows[i].Object.Raw, object); err != nil {
			return fmt.Errorf("reading a row of %s: %w", path, err)
		}
		table.Rows[i].Object.Object = object
	}
	for i, column := range slices.Backward(table.ColumnDefinitions) {
		if slices.Contains(skip, column.Name) {
			table.ColumnDefinitions = slices.Delete(table.ColumnDefinitions, i, i+1)
			for r := range table.Rows {
				table.Rows[r].Cells = slices.Delete(table.Rows[r].Cells, i, i+1)
			}
		}
	}
	fmt.Fprintf(s.out, "$ kubectl %s\n", command)
	return printers.NewTablePrinter(printers.PrintOptions{
		Wide:          strings.HasSuffix(command, "-o wide"),
		WithNamespace: strings.HasSuffix(command, "-A"),
	}).PrintObj(table, s.out)
}

// spec prints the name and spec of an object.
func (s *screen) spec(command string, object client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(map[string]any{"spec": content["spec"]})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "$ kubectl %s\n%s", command, text)
	return nil
}
