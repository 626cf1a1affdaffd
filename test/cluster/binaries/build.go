package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gpupool/gpupool-operator/test/cluster/internal/filelock"
)

const (
	temporaryPrefix = "building-"
	// progressEvery is short enough that nobody takes a long build for a hang.
	progressEvery = 5 * time.Second
	// lockRetry is how often a process looks whether another one has finished its build.
	lockRetry = 200 * time.Millisecond
	// outputLimit bounds how much compiler output an error carries, in bytes.
	outputLimit = 16 << 10
	// stopDelay is how long an interrupted go command may take to remove its work folder.
	stopDelay = 10 * time.Second
)

// Builder builds sets into a cache.
type Builder struct {
	// Cache is the folder that keeps built programs. Unset: CacheDir.
	Cache string
	// Log gets progress messages, one a line. Unset: nothing is said.
	Log io.Writer
}

// Build returns the folder that holds the set's programs, building them if the cache has no entry for exactly these
// pins, Go version, platform and flags. Processes that ask for the same set at once share one build: the later ones
// wait for the first. A failed build leaves nothing in the cache, and the error carries the compiler's output.
func (b Builder) Build(ctx context.Context, set Set) (string, error) {
	if b.Log == nil {
		b.Log = io.Discard
	}
	if b.Cache == "" {
		dir, err := CacheDir()
		if err != nil {
			return "", err
		}
		b.Cache = dir
	}
	key, err := set.key()
	if err != nil {
		return "", err
	}
	setDir := filepath.Join(b.Cache, set.Name)
	dir := filepath.Join(setDir, key)
	if set.usable(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(setDir, 0o755); err != nil {
		return "", fmt.Errorf("making the cache folder of %s: %w", set.Name, err)
	}
	lock, err := b.lock(ctx, set.Name)
	if err != nil {
		return "", err
	}
	defer lock.Release()
	if set.usable(dir) {
		return dir, nil
	}
	return dir, b.buildInto(ctx, set, setDir, dir)
}

// lock waits until no other process builds the set.
func (b Builder) lock(ctx context.Context, name string) (*filelock.Lock, error) {
	retry := time.NewTicker(lockRetry)
	defer retry.Stop()
	started, said := time.Now(), time.Time{}
	for {
		lock, err := filelock.Try(filepath.Join(b.Cache, name+".lock"))
		if err != nil {
			return nil, fmt.Errorf("waiting to build %s: %w", name, err)
		}
		if lock != nil {
			return lock, nil
		}
		if now := time.Now(); now.Sub(said) >= progressEvery {
			said = now
			fmt.Fprintf(b.Log, "Waiting for another process that builds %s, %s\n", name, now.Sub(started).Round(time.Second))
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another process that builds %s: %w", name, context.Cause(ctx))
		}
	}
}

// buildInto builds the set in a temporary folder and renames it to dir, so that dir is whole or absent.
func (b Builder) buildInto(ctx context.Context, set Set, setDir, dir string) (err error) {
	if err := prune(setDir); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(setDir, temporaryPrefix)
	if err != nil {
		return fmt.Errorf("making a folder to build %s in: %w", set.Name, err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(temporary)
		}
	}()
	if set.Cost != "" {
		fmt.Fprintf(b.Log, "Building %s from source into %s. This takes about %s, once.\n", set.Name, dir, set.Cost)
	}
	for _, program := range set.Programs {
		if err := b.buildProgram(ctx, set, program, temporary); err != nil {
			return err
		}
	}
	// An incomplete entry of the same key is in the way: somebody removed a program from it by hand.
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing an incomplete build of %s: %w", set.Name, err)
	}
	if err := os.Rename(temporary, dir); err != nil {
		return fmt.Errorf("putting %s into the cache: %w", set.Name, err)
	}
	return prune(setDir)
}

func (b Builder) buildProgram(ctx context.Context, set Set, program Program, dir string) error {
	progress := newProgress(b.Log, program.Name)
	defer progress.stop()

	// This also downloads whatever module is missing, so it counts as progress.
	list := goCommand(ctx, set, "list", "-deps", program.Package)
	list.Stderr = progress
	packages, err := list.Output()
	if err != nil {
		return fmt.Errorf("listing the packages of %s: %w\n%s", program.Name, err, progress.output())
	}
	progress.total(strings.Count(string(packages), "\n"))

	build := goCommand(ctx, set, set.buildArgs(program, filepath.Join(dir, program.Name))...)
	build.Stdout, build.Stderr = progress, progress
	if err := build.Run(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", program.Name, err, progress.output())
	}
	fmt.Fprintln(b.Log, progress.result())
	return nil
}

func goCommand(ctx context.Context, set Set, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = set.Dir, environment()
	// The go command removes its work folder when it is interrupted, but not when it is killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopDelay
	return cmd
}
