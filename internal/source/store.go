package source

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gpupool/gpupool-operator/internal/inventory"
)

// store is where a reflector puts the objects of one kind: it hands compact forms to the inventory, and what changed to
// post. It keeps nothing itself.
type store struct {
	kind      inventory.Kind
	decoder   decoder
	inventory *inventory.Inventory
	post      func(inventory.Change)
	// alive is called when the watch proves to work. A list does not prove it: listing may be allowed and watching not.
	alive func()
}

var (
	_ cache.TransformingStore      = &store{}
	_ cache.ReflectorBookmarkStore = &store{}
)

// Transformer makes compact forms of the objects of a streamed list as they arrive. Without it the reflector would
// gather all of them as API objects first.
func (s *store) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.compact(object) }
}

// compact makes the compact form of an object that is not one yet.
func (s *store) compact(object any) (inventory.Object, error) {
	switch o := object.(type) {
	case nil:
		return nil, nil
	case inventory.Object:
		return o, nil
	case *listItem:
		return o.object, nil
	}
	return s.decoder.decode(object)
}

// Add puts an object into the inventory.
func (s *store) Add(object any) error {
	s.alive()
	compact, err := s.compact(object)
	if err != nil {
		return fmt.Errorf("decoding one of the %s: %w", s.kind, err)
	}
	if compact == nil {
		return s.Delete(object)
	}
	s.post(s.inventory.Put(compact))
	return nil
}

// Update puts an object into the inventory.
func (s *store) Update(object any) error { return s.Add(object) }

// Delete removes an object from the inventory.
func (s *store) Delete(object any) error {
	s.alive()
	named, err := meta.Accessor(object)
	if err != nil {
		return fmt.Errorf("naming one of the %s: %w", s.kind, err)
	}
	key := types.NamespacedName{Namespace: named.GetNamespace(), Name: named.GetName()}
	s.post(s.inventory.Delete(s.kind, key))
	return nil
}

// Replace makes a list all that there is of the kind.
func (s *store) Replace(objects []any, _ string) error {
	compact := make([]inventory.Object, 0, len(objects))
	for _, object := range objects {
		c, err := s.compact(object)
		if err != nil {
			return fmt.Errorf("decoding a list of %s: %w", s.kind, err)
		}
		if c != nil {
			compact = append(compact, c)
		}
	}
	s.post(s.inventory.Replace(s.kind, compact))
	return nil
}

// clear makes nothing all that there is of the kind.
func (s *store) clear() {
	s.post(s.inventory.Replace(s.kind, nil))
}

// Bookmark is told of about once a minute while nothing changes.
func (s *store) Bookmark(string) error {
	s.alive()
	return nil
}

// Resync does nothing: the inventory misses nothing that it was given.
func (s *store) Resync() error { return nil }
