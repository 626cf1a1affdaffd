package fakedriver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The methods in this file name a pool by its node, and a shared pool by its own name. They return when the API server
// has stored the change. A change of content made while the driver is not alive, or while the pool is held or
// withdrawn, is written when that is over; a change of the publishing itself is then an error.

// writeAttempts bounds how often a change is written again because somebody else changed or deleted a slice meanwhile.
const writeAttempts = 5

// Bump raises the pool's generation: all slices are written anew, one after the other.
func (d *Driver) Bump(ctx context.Context, name string) error {
	return d.rewrite(ctx, name, extent{bump: true, first: all})
}

// BumpFirst begins to raise the generation and stops after the first n slices. The others keep the old generation, so
// the pool is incomplete. It stays like that until Finish.
func (d *Driver) BumpFirst(ctx context.Context, name string, n int) error {
	return d.rewrite(ctx, name, extent{bump: true, first: n})
}

// PublishFirst leaves only the first n slices of the pool, which still announce them all, as if the driver had just
// begun to publish. It stays like that until Finish.
func (d *Driver) PublishFirst(ctx context.Context, name string, n int) error {
	return d.rewrite(ctx, name, extent{bump: true, first: n, only: true})
}

// Hold stops all writing to the pool until Finish, so that a test can write slices of it itself.
func (d *Driver) Hold(name string) {
	p := d.pool(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
}

// Finish ends BumpFirst, PublishFirst and Hold: what is missing is written, in the generation that was begun.
func (d *Driver) Finish(ctx context.Context, name string) error {
	return d.edit(ctx, name, func(p *pool, _ *placement) error {
		p.held = false
		return nil
	})
}

// Wipe deletes the pool's slices once, as a kubelet does when it starts. The driver publishes again at once.
func (d *Driver) Wipe(ctx context.Context, name string) error {
	p := d.pool(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	return d.wipe(ctx, p)
}

// Withdraw deletes the pool's slices and publishes none until Restore, although the driver is alive.
func (d *Driver) Withdraw(ctx context.Context, name string) error {
	p := d.pool(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.withheld = true
	return d.wipe(ctx, p)
}

// Restore ends Withdraw.
func (d *Driver) Restore(ctx context.Context, name string) error {
	return d.edit(ctx, name, func(p *pool, _ *placement) error {
		p.withheld = false
		return nil
	})
}

// WithdrawDevice takes a device out of the pool. If it is allocated, the allocation is orphaned: it names a device that
// nobody publishes.
func (d *Driver) WithdrawDevice(ctx context.Context, name, device string) error {
	return d.editDevice(ctx, name, device, func(p *pool) { p.absent.Insert(device) })
}

// RestoreDevice ends WithdrawDevice.
func (d *Driver) RestoreDevice(ctx context.Context, name, device string) error {
	return d.editDevice(ctx, name, device, func(p *pool) { p.absent.Delete(device) })
}

// SetTaint puts a taint on a device, besides those of the shape. One with the same key and effect is replaced. The
// time is now, unless the taint has one.
func (d *Driver) SetTaint(ctx context.Context, name, device string, taint resourcev1.DeviceTaint) error {
	if taint.TimeAdded == nil {
		now := metav1.Now().Rfc3339Copy()
		taint.TimeAdded = &now
	}
	return d.editDevice(ctx, name, device, func(p *pool) {
		rest := slices.DeleteFunc(p.taints[device], sameTaint(taint.Key, taint.Effect))
		p.taints[device] = append(rest, taint)
	})
}

// RemoveTaint takes off a taint that SetTaint put on.
func (d *Driver) RemoveTaint(
	ctx context.Context, name, device, key string, effect resourcev1.DeviceTaintEffect,
) error {
	return d.editDevice(ctx, name, device, func(p *pool) {
		p.taints[device] = slices.DeleteFunc(p.taints[device], sameTaint(key, effect))
	})
}

// Duplicate publishes a device of the pool a second time, in a slice of its own, which makes the pool invalid.
func (d *Driver) Duplicate(ctx context.Context, name, device string) error {
	return d.editDevice(ctx, name, device, func(p *pool) { p.duplicates = append(p.duplicates, device) })
}

// RemoveDuplicates ends every Duplicate of the pool.
func (d *Driver) RemoveDuplicates(ctx context.Context, name string) error {
	return d.edit(ctx, name, func(p *pool, _ *placement) error {
		p.duplicates = nil
		return nil
	})
}

// Announce makes every slice of the pool announce a number of slices of its own choice: a larger one than there are, or
// a smaller one, makes the pool incomplete. With 0 the number is right again.
func (d *Driver) Announce(ctx context.Context, name string, count int64) error {
	return d.edit(ctx, name, func(p *pool, _ *placement) error {
		p.announced = count
		return nil
	})
}

// SetShape changes what the pool publishes, as if the node's hardware or the driver's settings had changed. With nil it
// is Options.Shape's choice again.
func (d *Driver) SetShape(ctx context.Context, name string, shape *Shape) error {
	return d.edit(ctx, name, func(p *pool, at *placement) error {
		if shape != nil && at != nil && shape.shared != at.shape.shared {
			return fmt.Errorf("shape %s: a node's pool and a shared pool cannot replace each other", shape.name)
		}
		p.shape = shape
		return nil
	})
}

// rewrite raises the generation of a pool that is published. If not all slices are written, the pool is held.
func (d *Driver) rewrite(ctx context.Context, name string, e extent) error {
	p := d.pool(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	at, err := d.place(name)
	if err != nil {
		return fmt.Errorf("pool %s: %w", name, err)
	}
	if p.held || p.withheld {
		return fmt.Errorf("pool %s is held or withdrawn", name)
	}
	wanted, err := p.wanted(at.shape, d.options.Name, at.node.Name)
	if err != nil {
		return err
	}
	partly := e.first != all
	if partly && (e.first < 1 || e.first >= len(wanted)) {
		return fmt.Errorf("pool %s has %d slices: cannot write only %d of them", name, len(wanted), e.first)
	}
	if err := d.publishAgain(ctx, p, at, e); err != nil {
		return err
	}
	if partly {
		p.held = true
		p.pending = p.written[wanted[0].Name].spec.Pool.Generation
	}
	return nil
}

// edit changes the pool and writes it, if it is published now. The placement is nil where the driver is not alive.
func (d *Driver) edit(ctx context.Context, name string, change func(*pool, *placement) error) error {
	p := d.pool(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	at, err := d.place(name)
	if errors.Is(err, errNotAlive) {
		return change(p, nil)
	}
	if err != nil {
		return err
	}
	if err := change(p, &at); err != nil {
		return err
	}
	if p.held || p.withheld {
		return nil
	}
	return d.publishAgain(ctx, p, at, writeAll)
}

// editDevice is edit for a change of a device, which has to be in the pool's shape.
func (d *Driver) editDevice(ctx context.Context, name, device string, change func(*pool)) error {
	return d.edit(ctx, name, func(p *pool, at *placement) error {
		if at != nil {
			if err := p.has(at.shape, d.options.Name, at.node.Name, device); err != nil {
				return err
			}
		}
		change(p)
		return nil
	})
}

// publishAgain publishes until nobody else got in between.
func (d *Driver) publishAgain(ctx context.Context, p *pool, at placement, e extent) error {
	for attempt := 1; ; attempt++ {
		err := d.publish(ctx, p, at, e)
		raced := apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
		if !raced || attempt == writeAttempts {
			return err
		}
	}
}

// wipe deletes the slices that the server has, which may be newer than the cache.
func (d *Driver) wipe(ctx context.Context, p *pool) error {
	selector := metav1.ListOptions{FieldSelector: d.ownSlices()}
	list, err := d.kubelet.ResourceV1().ResourceSlices().List(ctx, selector)
	if err != nil {
		return fmt.Errorf("listing the slices of pool %s: %w", p.name, err)
	}
	var doomed []*resourcev1.ResourceSlice
	for i := range list.Items {
		if belongsTo(&list.Items[i], p.name) {
			doomed = append(doomed, &list.Items[i])
		}
	}
	return d.deleteSlices(ctx, d.kubelet, doomed)
}
