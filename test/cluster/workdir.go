//go:build unix

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gpupool/gpupool-operator/test/cluster/internal/filelock"
)

const (
	workdirPrefix = "gpupool-cluster-"
	// ownerLock is locked while the process that owns the folder lives.
	ownerLock = "owner.lock"
	// keepMark is a file that says that nobody may clean the folder up.
	keepMark = "keep"
	// sweepAge protects a folder that another process has just made and not locked yet.
	sweepAge = time.Minute
)

// workdir is the folder of one cluster: data, certificates, logs.
type workdir struct {
	path      string
	temporary bool
	lock      *filelock.Lock
}

func newWorkdir(options Options) (workdir, error) {
	w := workdir{path: options.Dir, temporary: options.Dir == "" && !options.Keep}
	var err error
	if options.Dir == "" {
		w.path, err = os.MkdirTemp("", workdirPrefix)
	} else if w.path, err = filepath.Abs(options.Dir); err == nil {
		err = os.MkdirAll(w.path, 0o700)
	}
	if err != nil {
		return workdir{}, fmt.Errorf("making the cluster's folder: %w", err)
	}
	if options.Keep {
		if err := os.WriteFile(filepath.Join(w.path, keepMark), nil, 0o600); err != nil {
			return workdir{}, fmt.Errorf("marking the cluster's folder as kept: %w", err)
		}
	}
	w.lock, err = filelock.Try(filepath.Join(w.path, ownerLock))
	if err != nil {
		return workdir{}, fmt.Errorf("locking the cluster's folder: %w", err)
	}
	if w.lock == nil {
		return workdir{}, fmt.Errorf("another cluster is running in %s", w.path)
	}
	return w, nil
}

// removable is the path of the folder if it goes with the cluster, else empty.
func (w workdir) removable() string {
	if w.temporary {
		return w.path
	}
	return ""
}

func (w workdir) close() error {
	w.lock.Release()
	if !w.temporary {
		return nil
	}
	if err := os.RemoveAll(w.path); err != nil {
		return fmt.Errorf("removing the cluster's folder: %w", err)
	}
	return nil
}

// sweep removes temporary folders whose owner is gone. Usually the watchdog has done that; it cannot if the whole
// machine or container was stopped. A folder that cannot be looked at or removed is somebody else's.
func sweep() {
	folders, err := filepath.Glob(filepath.Join(os.TempDir(), workdirPrefix+"*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err != nil || time.Since(info.ModTime()) < sweepAge {
			continue
		}
		if _, err := os.Stat(filepath.Join(folder, keepMark)); err == nil {
			continue
		}
		lock, err := filelock.Try(filepath.Join(folder, ownerLock))
		if err != nil || lock == nil {
			continue
		}
		_ = os.RemoveAll(folder)
		lock.Release()
	}
}
