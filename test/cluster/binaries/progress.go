package binaries

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progress reads the output of a verbose go command, counts, and says every few seconds how far it is. It is the
// command's standard error output; what is neither a package nor a download is kept for the error message.
type progress struct {
	log     io.Writer
	program string
	started time.Time
	done    chan struct{}
	stopped sync.WaitGroup

	mu         sync.Mutex
	partial    []byte
	rest       bytes.Buffer
	downloads  int
	compiled   int
	totalCount int
}

func newProgress(log io.Writer, program string) *progress {
	p := &progress{log: log, program: program, started: time.Now(), done: make(chan struct{})}
	p.stopped.Go(func() {
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Fprintln(p.log, p.line())
			case <-p.done:
				return
			}
		}
	})
	return p
}

func (p *progress) stop() {
	close(p.done)
	p.stopped.Wait()
}

// total says how many packages the program has. Those that the go command finds in its own cache are never announced,
// so a build may end far below it; with a warm cache it only links.
func (p *progress) total(packages int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.totalCount = packages
}

// Write takes output of the go command.
func (p *progress) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partial = append(p.partial, data...)
	for {
		line, rest, found := bytes.Cut(p.partial, []byte("\n"))
		if !found {
			return len(data), nil
		}
		p.take(string(line))
		p.partial = rest
	}
}

func (p *progress) take(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.downloads++
	case line != "" && p.totalCount > 0 && !strings.ContainsAny(line, " \t:"):
		p.compiled++
	default:
		p.rest.WriteString(line + "\n")
	}
}

func (p *progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := time.Since(p.started).Round(time.Second)
	if p.totalCount == 0 {
		return fmt.Sprintf("Building %s: looking for packages, %d modules downloaded, %s", p.program, p.downloads, elapsed)
	}
	return fmt.Sprintf("Building %s: %d of at most %d packages compiled, %s", p.program, p.compiled, p.totalCount, elapsed)
}

// result is the line that ends the program's messages.
func (p *progress) result() string {
	return fmt.Sprintf("Built %s in %s", p.program, time.Since(p.started).Round(time.Second))
}

// output is what the command said besides its progress.
func (p *progress) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return tail(append(p.rest.Bytes(), p.partial...), outputLimit)
}
