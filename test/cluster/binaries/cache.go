package binaries

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// EnvCache names the environment variable that holds the cache folder.
const EnvCache = "GPUPOOL_CACHE"

// keptEntries is how many builds of one set stay in the cache. Three let two branches with different pins alternate
// without building again.
const keptEntries = 3

// CacheDir is where built programs are kept: $GPUPOOL_CACHE, else gpupool-operator in the user's cache folder.
func CacheDir() (string, error) {
	if dir := os.Getenv(EnvCache); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a cache folder (set %s to choose one): %w", EnvCache, err)
	}
	return filepath.Join(base, "gpupool-operator"), nil
}

// environment is what the go command of a build sees. The pins must hold, whatever the user's settings are: no
// workspace, no -mod=mod, and a program that runs on this machine. GOFLAGS may not be empty here, since an empty
// variable falls back to the one in the user's go env file.
func environment() []string {
	return append(os.Environ(),
		"GOFLAGS=-mod=readonly",
		"GOWORK=off",
		"CGO_ENABLED=0",
		"GOOS="+runtime.GOOS,
		"GOARCH="+runtime.GOARCH,
	)
}

// key identifies everything that decides what a build of the set yields.
func (s Set) key() (string, error) {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum", "tools.go"} {
		data, err := os.ReadFile(filepath.Join(s.Dir, name))
		if err != nil {
			return "", fmt.Errorf("reading the pins of %s: %w", s.Name, err)
		}
		fmt.Fprintf(hash, "%s %d\n", name, len(data))
		hash.Write(data)
	}
	// Run in the nested module: a toolchain line in its go.mod selects another Go.
	cmd := exec.Command("go", "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT")
	cmd.Dir, cmd.Env = s.Dir, environment()
	toolchain, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking for the Go version that builds %s: %w", s.Name, commandError(err))
	}
	hash.Write(toolchain)
	for _, program := range s.Programs {
		fmt.Fprintf(hash, "%s\n", strings.Join(s.buildArgs(program, program.Name), " "))
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// buildArgs are the arguments of the go command that builds the program into the file output.
func (s Set) buildArgs(program Program, output string) []string {
	return []string{"build", "-v", "-ldflags", s.LDFlags, "-o", output, program.Package}
}

// usable reports whether dir holds every program of the set, and marks it as used now.
func (s Set) usable(dir string) bool {
	for _, program := range s.Programs {
		info, err := os.Stat(filepath.Join(dir, program.Name))
		if err != nil || info.Mode()&0o111 == 0 {
			return false
		}
	}
	now := time.Now()
	// Only the order in which old entries are dropped depends on the time, so a read-only cache is good enough.
	_ = os.Chtimes(dir, now, now)
	return true
}

// prune removes what a killed build left and all entries but the last used ones. The caller holds the set's lock, so
// nobody else is building.
func prune(setDir string) error {
	entries, err := os.ReadDir(setDir)
	if err != nil {
		return fmt.Errorf("looking for old builds: %w", err)
	}
	var kept []os.FileInfo
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() {
			continue
		}
		if !strings.HasPrefix(entry.Name(), temporaryPrefix) {
			kept = append(kept, info)
			continue
		}
		if err := os.RemoveAll(filepath.Join(setDir, entry.Name())); err != nil {
			return fmt.Errorf("removing an unfinished build: %w", err)
		}
	}
	slices.SortFunc(kept, func(a, b os.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, info := range kept[min(len(kept), keptEntries):] {
		if err := os.RemoveAll(filepath.Join(setDir, info.Name())); err != nil {
			return fmt.Errorf("removing an old build: %w", err)
		}
	}
	return nil
}

// tail keeps the end of text, so that a long log does not bury the line that matters.
func tail(text []byte, limit int) string {
	if len(text) > limit {
		text = text[len(text)-limit:]
		if _, rest, found := bytes.Cut(text, []byte("\n")); found {
			text = rest
		}
	}
	return string(bytes.TrimSpace(text))
}
