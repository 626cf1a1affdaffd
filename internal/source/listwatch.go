package source

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gpupool/gpupool-operator/internal/inventory"
)

// pageSize is how many objects a page of a list holds. A page is all that is ever held as API objects.
const pageSize = 500

// listItem carries a compact form where client-go wants a runtime.Object.
type listItem struct {
	object inventory.Object
}

var _ runtime.Object = &listItem{}

// GetObjectKind is that of no kind: nobody asks.
func (*listItem) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject is the item itself: compact forms do not change.
func (i *listItem) DeepCopyObject() runtime.Object { return i }

// decode makes the compact form of an object; nil for one that the inventory does not hold.
type decode func(object any) (inventory.Object, error)

// newListWatch lists and watches a resource. Lists are what a reflector falls back to where the server does not stream
// them; each page is made compact before the next is asked for.
func newListWatch(of target, compact decode) *cache.ListWatch {
	plain := cache.NewListWatchFromClient(of.client, of.resource, metav1.NamespaceAll, of.selector)
	listPage := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if options.ResourceVersion == "0" {
			// "Any version" makes the server ignore the limit and send everything at once. Since 1.34 it serves pages of
			// the current version from its cache too.
			options.ResourceVersion = ""
		}
		page, err := plain.ListWithContext(ctx, options)
		if err != nil {
			return nil, err
		}
		return compactPage(page, compact)
	}
	return &cache.ListWatch{ListWithContextFunc: listPage, WatchFuncWithContext: plain.WatchFuncWithContext}
}

// compactPage makes a list of compact forms of a page.
func compactPage(page runtime.Object, compact decode) (runtime.Object, error) {
	list, err := meta.ListAccessor(page)
	if err != nil {
		return nil, fmt.Errorf("reading a page of a list: %w", err)
	}
	items := &metainternalversion.List{ListMeta: metav1.ListMeta{
		ResourceVersion:    list.GetResourceVersion(),
		Continue:           list.GetContinue(),
		RemainingItemCount: list.GetRemainingItemCount(),
	}}
	err = meta.EachListItem(page, func(item runtime.Object) error {
		object, err := compact(item)
		if err != nil {
			return err
		}
		if object != nil {
			items.Items = append(items.Items, &listItem{object: object})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("decoding a page of a list: %w", err)
	}
	return items, nil
}
