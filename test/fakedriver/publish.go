package fakedriver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// placement is where a pool is published, and by whom.
type placement struct {
	shape *Shape
	// node owns the slices of a node's pool. For a shared pool it is one of the nodes on which the driver is alive.
	node *corev1.Node
	// driverPod is nil in mode Always.
	driverPod *corev1.Pod
}

// errNotAlive is returned where a pool would have to be published and the driver is not alive.
var errNotAlive = errors.New("the driver is not alive there")

// place finds where the pool is published: the node of that name, or the first of the nodes that share it.
func (d *Driver) place(name string) (placement, error) {
	nodes := make([]*corev1.Node, 1)
	node, err := d.nodes.Get(name)
	switch {
	case err == nil:
		nodes[0] = node
	case apierrors.IsNotFound(err):
		if nodes, err = d.nodes.List(labels.Everything()); err != nil {
			return placement{}, err
		}
	default:
		return placement{}, err
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, node := range nodes {
		if of, ok := d.poolOf(node); !ok || of != name {
			continue
		}
		if driverPod, alive := d.aliveOn(node); alive {
			return placement{shape: d.options.Shape(node), node: node, driverPod: driverPod}, nil
		}
	}
	return placement{}, errNotAlive
}

// syncPool brings the API server to what the pool should publish, if it differs.
func (d *Driver) syncPool(ctx context.Context, name string) error {
	p := d.pool(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	at, err := d.place(name)
	if errors.Is(err, errNotAlive) {
		return d.withdrawLater(ctx, p)
	}
	if err != nil {
		return err
	}
	p.deadSince = time.Time{}
	if p.held || p.withheld {
		return nil
	}
	wanted, err := p.wanted(at.shape, d.options.Name, at.node.Name)
	if err != nil {
		return err
	}
	if d.upToDate(p, wanted) {
		return nil
	}
	return d.publish(ctx, p, at, writeAll)
}

// withdrawLater deletes the slices when the driver has been dead for long enough, as the kubelet of the node does.
func (d *Driver) withdrawLater(ctx context.Context, p *pool) error {
	known := d.known(p.name)
	if len(known) == 0 || d.nodeIsGone(known[0]) {
		p.deadSince = time.Time{}
		return nil
	}
	if p.deadSince.IsZero() {
		p.deadSince = time.Now()
	}
	if left := d.options.WithdrawAfter - time.Since(p.deadSince); left > 0 {
		d.poolQueue.AddAfter(p.name, left)
		return nil
	}
	return d.deleteSlices(ctx, d.kubelet, known)
}

// nodeIsGone reports whether the slice's node was deleted. Its kubelet is gone too, so the slice is left to the garbage
// collector.
func (d *Driver) nodeIsGone(slice *resourcev1.ResourceSlice) bool {
	node := nodeOf(slice)
	if node == "" {
		return false
	}
	_, err := d.nodes.Get(node)
	return apierrors.IsNotFound(err)
}

// known are the pool's slices in the cache.
func (d *Driver) known(name string) []*resourcev1.ResourceSlice {
	return indexed[*resourcev1.ResourceSlice](d.slices, slicesByPool, name)
}

// belongsTo reports whether a slice of the driver is part of the pool: by node, or for a shared pool by name.
func belongsTo(slice *resourcev1.ResourceSlice, name string) bool { return poolNameOf(slice) == name }

func poolNameOf(slice *resourcev1.ResourceSlice) string {
	if node := nodeOf(slice); node != "" {
		return node
	}
	return slice.Spec.Pool.Name
}

// upToDate reports whether the cache shows exactly what was written last, and that is what is wanted.
func (d *Driver) upToDate(p *pool, wanted []resourcev1.ResourceSlice) bool {
	known := d.known(p.name)
	if len(known) != len(wanted) {
		return false
	}
	versions := map[string]string{}
	for _, slice := range known {
		versions[slice.Name] = slice.ResourceVersion
	}
	for i := range wanted {
		if p.changed(&wanted[i], versions[wanted[i].Name]) {
			return false
		}
	}
	return true
}

// changed reports whether the slice has to be written. It compares with what was sent, not with what the server made
// of it: servers fill in defaults and drop fields that they do not know.
func (p *pool) changed(wanted *resourcev1.ResourceSlice, version string) bool {
	written, ok := p.written[wanted.Name]
	if !ok || written.version != version {
		return true
	}
	want := wanted.Spec
	want.Pool.Generation = written.spec.Pool.Generation
	return !equality.Semantic.DeepEqual(want, written.spec)
}

// extent says how much of a pool is written.
type extent struct {
	// bump raises the generation even if nothing else changes.
	bump bool
	// first is how many slices are written. The rest stay as they are.
	first int
	// only deletes the rest instead.
	only bool
}

// all is more slices than a pool has.
const all = 1 << 30

var writeAll = extent{first: all}

// publish writes the pool. Like the library for drivers it keeps the generation if a single update does, and it writes
// slice by slice, so that the pool is incomplete in between. The caller holds p.mu.
func (d *Driver) publish(ctx context.Context, p *pool, at placement, e extent) (err error) {
	defer func() { p.failure = err }()
	client, err := d.as(ctx, at.driverPod)
	if err != nil {
		return err
	}
	wanted, err := p.wanted(at.shape, d.options.Name, at.node.Name)
	if err != nil {
		return err
	}
	live, err := d.live(ctx, client, p.name, wanted[0].Spec)
	if err != nil {
		return err
	}
	if err := d.own(ctx, client, at, wanted); err != nil {
		return err
	}
	p.setGeneration(wanted, live, e)

	existing, obsolete := sortOut(live, wanted, e)
	if err := d.deleteSlices(ctx, client, obsolete); err != nil {
		return err
	}
	for i := range wanted[:min(e.first, len(wanted))] {
		if err := p.write(ctx, client, &wanted[i], existing[wanted[i].Name]); err != nil {
			return err
		}
	}
	if e.first >= len(wanted) {
		p.pending = 0
	}
	d.options.Log.V(1).Info("Published", "driver", d.options.Name, "pool", p.name,
		"slices", min(e.first, len(wanted)), "of", len(wanted), "generation", wanted[0].Spec.Pool.Generation)
	return nil
}

// sortOut divides the live slices into those that may stay, by name, and those that have to go.
func sortOut(
	live, wanted []resourcev1.ResourceSlice, e extent,
) (existing map[string]*resourcev1.ResourceSlice, obsolete []*resourcev1.ResourceSlice) {
	existing = map[string]*resourcev1.ResourceSlice{}
	for i := range live {
		index := slices.IndexFunc(wanted, func(w resourcev1.ResourceSlice) bool { return w.Name == live[i].Name })
		if index < 0 || e.only && index >= e.first {
			obsolete = append(obsolete, &live[i])
			continue
		}
		existing[live[i].Name] = &live[i]
	}
	return existing, obsolete
}

// live are the pool's slices on the server.
func (d *Driver) live(
	ctx context.Context, client kubernetes.Interface, name string, spec resourcev1.ResourceSliceSpec,
) ([]resourcev1.ResourceSlice, error) {
	// Not by spec.pool.name: servers before 1.37 do not know that selector.
	selector := fields.Set{resourcev1.ResourceSliceSelectorDriver: d.options.Name}
	if node := ptr.Deref(spec.NodeName, ""); node != "" {
		selector[resourcev1.ResourceSliceSelectorNodeName] = node
	}
	list, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("listing the slices of pool %s: %w", name, err)
	}
	return slices.DeleteFunc(list.Items, func(slice resourcev1.ResourceSlice) bool {
		return !belongsTo(&slice, name)
	}), nil
}

// own makes the node the owner of its slices, so that they are collected with it. A shared pool has no owner.
func (d *Driver) own(
	ctx context.Context, client kubernetes.Interface, at placement, wanted []resourcev1.ResourceSlice,
) error {
	if nodeOf(&wanted[0]) == "" {
		return nil
	}
	// A driver asks for its own node to learn the UID, and needs the right to.
	node, err := client.CoreV1().Nodes().Get(ctx, at.node.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the driver's node: %w", err)
	}
	for i := range wanted {
		wanted[i].OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1",
			Kind:       "Node",
			Name:       node.Name,
			UID:        node.UID,
			Controller: ptr.To(true),
		}}
	}
	return nil
}

// setGeneration decides the generation of what is going to be written.
func (p *pool) setGeneration(wanted, live []resourcev1.ResourceSlice, e extent) {
	generation := int64(0)
	versions := map[string]string{}
	for _, slice := range live {
		generation = max(generation, slice.Spec.Pool.Generation)
		versions[slice.Name] = slice.ResourceVersion
	}
	created, updated := 0, 0
	for i := range wanted {
		version, exists := versions[wanted[i].Name]
		switch {
		case !exists:
			created++
		case p.changed(&wanted[i], version):
			updated++
		}
	}
	switch {
	case p.pending != 0:
		generation = p.pending
	case e.bump || created > 0 || updated > 1:
		generation++
	}
	for i := range wanted {
		wanted[i].Spec.Pool.Generation = generation
	}
}

// write creates or updates one slice, or does nothing if it is as wanted.
func (p *pool) write(ctx context.Context, client kubernetes.Interface, wanted, live *resourcev1.ResourceSlice) error {
	api := client.ResourceV1().ResourceSlices()
	var stored *resourcev1.ResourceSlice
	var err error
	switch {
	case live == nil:
		stored, err = api.Create(ctx, wanted, metav1.CreateOptions{})
	case live.Spec.Pool == wanted.Spec.Pool && !p.changed(wanted, live.ResourceVersion):
		return nil
	default:
		wanted.ResourceVersion = live.ResourceVersion
		stored, err = api.Update(ctx, wanted, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing ResourceSlice %s: %w", wanted.Name, err)
	}
	p.written[wanted.Name] = writtenSlice{spec: wanted.Spec, version: stored.ResourceVersion}
	return nil
}

func (d *Driver) deleteSlices(
	ctx context.Context, client kubernetes.Interface, doomed []*resourcev1.ResourceSlice,
) error {
	for _, slice := range doomed {
		err := client.ResourceV1().ResourceSlices().Delete(ctx, slice.Name, metav1.DeleteOptions{
			Preconditions: metav1.NewUIDPreconditions(string(slice.UID)),
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting ResourceSlice %s: %w", slice.Name, err)
		}
	}
	return nil
}
