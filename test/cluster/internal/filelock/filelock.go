//go:build unix

package filelock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Lock is a held lock.
type Lock struct{ file *os.File }

// Try takes the lock on the file at path, making the file if need be. It returns nil without an error if somebody
// else holds it, in this process or in another.
func Try(path string) (*Lock, error) {
	// Opened close-on-exec: a child process must not keep the lock alive.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening a lock file: %w", err)
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return &Lock{file: file}, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

// Release gives the lock back. The file stays: removing it would let two processes hold locks on two files of the
// same name.
func (l *Lock) Release() {
	// Closing the only descriptor drops the lock.
	_ = l.file.Close()
}
