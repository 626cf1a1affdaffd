package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/gpupool/gpupool-operator/internal/inventory"
)

// captured are the kinds that are read from a folder, in the version that is read.
var captured = map[string]schema.GroupVersion{
	"ResourceSlice":   resourcev1.SchemeGroupVersion,
	"ResourceClaim":   resourcev1.SchemeGroupVersion,
	"DeviceTaintRule": resourcev1.SchemeGroupVersion,
	"Pod":             corev1.SchemeGroupVersion,
	"Node":            corev1.SchemeGroupVersion,
}

// ReadFolder fills an inventory with the objects in a folder of captured files: every .yaml, .yml and .json file in it
// and below, with any number of documents, each an object or a list of objects. What the inventory held before is gone.
//
// Objects of other kinds are ignored. Pods that are placed or have ended are left out, as they are when a server is
// watched. An error names the file and the document, counted from 1 without empty ones; the inventory is then as it
// was.
func ReadFolder(folder fs.FS, in *inventory.Inventory, profileLabel string) error {
	r := folderReader{decoder: decoder{profileLabel: profileLabel}, found: sets.New[objectID]()}
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading a folder of captured objects: %w", err)
		}
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return nil
		}
		return r.readFile(folder, name)
	})
	if err != nil {
		return err
	}
	in.Replace(inventory.Slices, r.objects)
	in.Replace(inventory.Claims, r.objects)
	in.Replace(inventory.Pods, r.objects)
	in.Replace(inventory.Nodes, r.objects)
	in.Replace(inventory.TaintRules, r.objects)
	return nil
}

// folderReader gathers the objects of a folder.
type folderReader struct {
	decoder decoder
	objects []inventory.Object
	found   sets.Set[objectID]
}

type objectID struct {
	kind string
	name types.NamespacedName
}

func (r *folderReader) readFile(folder fs.FS, name string) error {
	file, err := folder.Open(name)
	if err != nil {
		return fmt.Errorf("opening a captured file: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	documents := yaml.NewYAMLReader(bufio.NewReader(file))
	for number := 1; ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s, document %d: %w", name, number, err)
		}
		empty, err := r.readDocument(document)
		if err != nil {
			return fmt.Errorf("%s, document %d: %w", name, number, err)
		}
		if !empty {
			number++
		}
	}
}

// readDocument reads an object, and says whether the document holds nothing, or nothing but comments.
func (r *folderReader) readDocument(document []byte) (empty bool, err error) {
	text, err := yaml.ToJSON(document)
	if err != nil {
		return false, err
	}
	if bytes.Equal(bytes.TrimSpace(text), []byte("null")) {
		return true, nil
	}
	return false, r.readObject(text)
}

func (r *folderReader) readObject(text []byte) error {
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if kind != nil && kind.Kind != "" {
		if read, err := isRead(*kind); err != nil || !read {
			return err
		}
	}
	if err != nil {
		return err
	}
	if list, ok := object.(*corev1.List); ok {
		for i := range list.Items {
			if err := r.readObject(list.Items[i].Raw); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		return nil
	}
	if meta.IsListType(object) {
		return meta.EachListItem(object, func(item runtime.Object) error {
			return r.add(strings.TrimSuffix(kind.Kind, "List"), item)
		})
	}
	return r.add(kind.Kind, object)
}

// isRead says whether a kind is read from a folder: one of the captured kinds, a list of one, or a list of anything.
// The error is a captured kind in a version that is not read; to leave it out would make wrong counts.
func isRead(kind schema.GroupVersionKind) (bool, error) {
	if kind == corev1.SchemeGroupVersion.WithKind("List") {
		return true, nil
	}
	version, found := captured[strings.TrimSuffix(kind.Kind, "List")]
	if !found || kind.Group != version.Group {
		return false, nil
	}
	if kind.GroupVersion() != version {
		return false, fmt.Errorf("%s is of version %s; it must be %s", kind.Kind, kind.GroupVersion(), version)
	}
	return true, nil
}

func (r *folderReader) add(kind string, object runtime.Object) error {
	named, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	id := objectID{kind: kind, name: types.NamespacedName{Namespace: named.GetNamespace(), Name: named.GetName()}}
	if r.found.Has(id) {
		return fmt.Errorf("%s %s is there twice", kind, id.name)
	}
	r.found.Insert(id)
	compact, err := r.decoder.decode(object)
	if err != nil {
		return err
	}
	if compact != nil {
		r.objects = append(r.objects, compact)
	}
	return nil
}
